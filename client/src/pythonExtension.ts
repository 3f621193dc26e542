import * as vscode from 'vscode';

/**
 * The Python extensions tell which environment a folder uses. Neither is required: without them `python3` on PATH serves.
 * Only the few members used here are described; both are public API of these extensions.
 */
interface PythonApi {
    readonly environments: {
        getActiveEnvironmentPath(resource?: vscode.Uri): { readonly path: string };
        resolveEnvironment(path: { readonly path: string }): Promise<{ readonly executable: { readonly uri?: vscode.Uri } } | undefined>;
        readonly onDidChangeActiveEnvironmentPath: vscode.Event<unknown>;
    };
}

interface EnvironmentsApi {
    getEnvironment(scope?: vscode.Uri): Promise<{ readonly execInfo?: { readonly run?: { readonly executable?: string; readonly args?: string[] } } } | undefined>;
    readonly onDidChangeEnvironment?: vscode.Event<unknown>;
}

const ENVIRONMENTS = 'ms-python.vscode-python-envs';
const PYTHON = 'ms-python.python';

async function api<T>(id: string): Promise<T | undefined> {
    const extension = vscode.extensions.getExtension<T>(id);
    return extension === undefined ? undefined : await extension.activate();
}

/** The command of the active environment of a folder, asked of each of the two extensions in turn. */
export async function activeInterpreter(folder: vscode.Uri | undefined): Promise<readonly (readonly string[])[]> {
    const commands: (readonly string[])[] = [];
    const run = (await (await api<EnvironmentsApi>(ENVIRONMENTS))?.getEnvironment?.(folder))?.execInfo?.run;
    if (run?.executable !== undefined) {
        commands.push([run.executable, ...(run.args ?? [])]);
    }
    const environments = (await api<PythonApi>(PYTHON))?.environments;
    if (environments !== undefined) {
        const resolved = await environments.resolveEnvironment(environments.getActiveEnvironmentPath(folder));
        const path = resolved?.executable.uri?.fsPath;
        if (path !== undefined && !commands.some(command => command[0] === path)) {
            commands.push([path]);
        }
    }
    return commands;
}

/** Calls back when the user picks another environment; also for an extension installed later. */
export function onDidChangeInterpreter(changed: () => void): vscode.Disposable {
    const watched = new Map<string, vscode.Disposable>();
    const watch = async (): Promise<void> => {
        for (const id of [ENVIRONMENTS, PYTHON]) {
            if (watched.has(id) || vscode.extensions.getExtension(id) === undefined) {
                continue;
            }
            watched.set(id, new vscode.Disposable(() => undefined));
            const event =
                id === PYTHON
                    ? (await api<PythonApi>(PYTHON))?.environments?.onDidChangeActiveEnvironmentPath
                    : (await api<EnvironmentsApi>(ENVIRONMENTS))?.onDidChangeEnvironment;
            if (event !== undefined) {
                watched.set(id, event(changed));
            }
        }
    };
    const start = (): void => void watch().catch(() => undefined); // a broken neighbour is no reason to fail
    start();
    const later = vscode.extensions.onDidChange(() => {
        start();
        changed();
    });
    return new vscode.Disposable(() => {
        later.dispose();
        watched.forEach(item => item.dispose());
    });
}
