// The Python that builds: GRADGUARD_PYTHON, else the repository's .venv, else python3 on PATH.
//   node client/scripts/python.mjs SCRIPT ARGS...
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export function python() {
    const own = process.platform === 'win32' ? '.venv/Scripts/python.exe' : '.venv/bin/python';
    return process.env.GRADGUARD_PYTHON ?? (existsSync(own) ? own : 'python3');
}

/** Runs Python and ends this process with a message if that fails. */
export function runPython(args, options = {}) {
    const run = spawnSync(python(), args, { stdio: 'inherit', ...options });
    if (run.status !== 0) {
        console.error(`${python()} ${args.join(' ')}: ${run.error?.message ?? `exit ${run.status}`}`);
        process.exit(run.status ?? 1);
    }
    return run;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
    runPython(process.argv.slice(2), { env: { ...process.env, PYTHONPATH: 'server' } });
}
