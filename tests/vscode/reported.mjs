// What the command line of this checkout makes of a text: the editor must show the same.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { python } from '../../client/scripts/python.mjs';

/** Findings in a text, as in the JSON of `gradguard check`. */
export function reported(text) {
    return onFile(text, ['--format', 'json'], ({ stdout }) => JSON.parse(stdout).findings);
}

/** The text after `gradguard check --fix`. */
export function repaired(text) {
    return onFile(text, ['--fix'], (_, file) => readFileSync(file, 'utf8'));
}

function onFile(text, options, result) {
    const folder = mkdtempSync(path.join(os.tmpdir(), 'gg-'));
    const file = path.join(folder, 'train.py');
    try {
        writeFileSync(file, text);
        const run = spawnSync(python(), ['-m', 'gradguard', 'check', '--no-cache', ...options, file], {
            encoding: 'utf8',
            env: { ...process.env, PYTHONPATH: path.resolve('server') },
        });
        if (run.status !== 0 && run.status !== 1) {
            throw new Error(`gradguard check: exit ${run.status}\n${run.stderr}`);
        }
        return result(run, file);
    } finally {
        rmSync(folder, { recursive: true });
    }
}
