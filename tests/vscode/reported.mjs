// What the command line of this checkout reports: the editor must show the same.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { python } from '../../client/scripts/python.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Findings in a text, as in the JSON of `gradguard check`. */
export function reported(text, name = 'train.py') {
    const run = spawnSync(python(), ['-m', 'gradguard', 'check', '-', '--stdin-filename', name, '--format', 'json'], {
        cwd: ROOT,
        input: text,
        encoding: 'utf8',
        env: { ...process.env, PYTHONPATH: 'server' },
    });
    if (run.status !== 0 && run.status !== 1) {
        throw new Error(`gradguard check: exit ${run.status}\n${run.stderr}`);
    }
    return JSON.parse(run.stdout).findings;
}
