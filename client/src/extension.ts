import * as vscode from 'vscode';
import { commands } from './commands';
import { keysOfServer, needsNewServer } from './configuration';
import { Interpreters } from './interpreters';
import { Popups } from './popups';
import { Pages } from './pages';
import { onDidChangeInterpreter } from './pythonExtension';
import { Server } from './server';
import { Status } from './status';
import { watchTorch } from './torchContext';

let server: Server | undefined;

export function activate(context: vscode.ExtensionContext): void {
    const manifest: unknown = context.extension.packageJSON;
    const version = String((manifest as { version?: unknown }).version);
    const log = vscode.window.createOutputChannel('gradguard', { log: true });
    const status = new Status();
    const pages = new Pages();
    const interpreters = new Interpreters(log);
    const faults = new Popups(
        async (message, buttons) => vscode.window.showErrorMessage(message, ...buttons),
        message => log.error(message),
        5,
    );
    const warnings = new Popups(
        async (message, buttons) => vscode.window.showWarningMessage(message, ...buttons),
        message => log.warn(message),
        5,
    );
    const home = context.extensionPath;
    const running = new Server(home, keysOfServer(manifest), log, status, { faults, warnings }, interpreters);
    server = running;
    log.info(`gradguard ${version} in ${vscode.env.appName} ${vscode.version}`);
    context.subscriptions.push(
        log,
        status,
        pages,
        running,
        watchTorch(),
        ...commands({ home, version, log, server: running, pages, interpreters }),
        vscode.workspace.onDidGrantWorkspaceTrust(() => running.restart('the workspace is trusted now')),
        vscode.workspace.onDidChangeConfiguration(change => {
            if (needsNewServer(change) || (change.affectsConfiguration('gradguard.enable') && !running.state.running)) {
                void running.restart('a setting changed');
            }
        }),
        onDidChangeInterpreter(() => void running.restart('the Python environment changed')),
    );
    void running.restart('the extension was activated');
}

export async function deactivate(): Promise<void> {
    await server?.end();
    server = undefined;
}
