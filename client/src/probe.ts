import { execFile, type ExecFileException } from 'node:child_process';
import * as os from 'node:os';
import { Answer, QUESTION, readFacts } from './interpreter';

const PATIENCE_MS = 20_000;

/** Asks a Python about itself. Never rejects; the problem is text for the log. */
export function ask(command: readonly string[]): Promise<Answer> {
    const [program, ...rest] = command;
    if (program === undefined) {
        return Promise.resolve({ problem: 'is empty' });
    }
    return new Promise(resolve => {
        execFile(
            program,
            [...rest, '-c', QUESTION],
            { timeout: PATIENCE_MS, cwd: os.tmpdir(), windowsHide: true, env: { ...process.env, PYTHONUTF8: '1' } },
            (error, stdout, stderr) => {
                if (error) {
                    resolve({ problem: explain(error, stderr) });
                } else {
                    resolve(readFacts(stdout));
                }
            },
        );
    });
}

function explain(error: ExecFileException, stderr: string): string {
    if (error.killed === true) {
        return `did not answer within ${PATIENCE_MS / 1000} s`;
    }
    if (error.code === 'ENOENT') {
        return 'not found';
    }
    const last = stderr.trim().split(/\r?\n/).pop();
    return last !== undefined && last !== '' ? last : error.message;
}
