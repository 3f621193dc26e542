import * as os from 'node:os';
import * as vscode from 'vscode';
import type { ImportStrategy } from './launch';
import { substitute, Variables } from './variables';

/** What the client itself acts on where it starts a process. */
export interface ClientSettings {
    readonly interpreter: readonly string[];
    readonly importStrategy: ImportStrategy;
    readonly path: readonly string[];
    readonly args: readonly string[];
    readonly logLevel: string;
}

export function clientSettings(folder: vscode.Uri | undefined): ClientSettings {
    const config = vscode.workspace.getConfiguration('gradguard', folder ?? null);
    const names = variables(folder);
    const words = (key: string): string[] => config.get<string[]>(key, []).map(word => substitute(word, names));
    return {
        interpreter: words('interpreter'),
        importStrategy: config.get<ImportStrategy>('importStrategy', 'useBundled'),
        path: words('path'),
        args: words('args'),
        logLevel: config.get<string>('logLevel', 'info'),
    };
}

function variables(folder: vscode.Uri | undefined): Variables {
    const folders = vscode.workspace.workspaceFolders ?? [];
    return {
        workspaceFolder: (folder ?? folders[0]?.uri)?.fsPath,
        folders: new Map(folders.map(each => [each.name, each.uri.fsPath])),
        userHome: os.homedir(),
        cwd: process.cwd(),
        env: process.env,
    };
}
