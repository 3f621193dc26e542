import * as path from 'node:path';

/** How the server's process is started. Pure. */
export interface Launch {
    readonly command: string;
    readonly args: readonly string[];
    /** Added to the environment of the process. */
    readonly env: Readonly<Record<string, string>>;
}

export type ImportStrategy = 'useBundled' | 'fromEnvironment';

export interface LaunchRequest {
    /** Folder of the installed extension. */
    readonly home: string;
    readonly interpreter: readonly string[];
    readonly importStrategy: ImportStrategy;
    /** Arguments of gradguard itself, such as `server`. */
    readonly args: readonly string[];
}

const ENVIRONMENT: Readonly<Record<string, string>> = {
    PYTHONUNBUFFERED: '1',
    PYTHONUTF8: '1',
    PYTHONSAFEPATH: '1', // Python 3.11+: the current folder is not searched for modules
};

/** Runs gradguard with a Python, from the extension's own copy or from that Python's environment. */
export function launch(request: LaunchRequest): Launch {
    const [command, ...rest] = request.interpreter;
    if (command === undefined) {
        throw new Error('the interpreter is empty');
    }
    return {
        command,
        args: [...rest, path.join(request.home, 'client', 'bundled', 'tool', 'launch.py'), ...request.args],
        env: { ...ENVIRONMENT, GRADGUARD_IMPORT_STRATEGY: request.importStrategy },
    };
}

/** Runs a gradguard that the user named by `gradguard.path`. */
export function launchGiven(given: readonly string[], args: readonly string[]): Launch {
    const [command, ...rest] = given;
    if (command === undefined) {
        throw new Error('gradguard.path is empty');
    }
    return { command, args: [...rest, ...args], env: ENVIRONMENT };
}
