import * as vscode from 'vscode';
import { commands } from '../commands';
import { keysOfServer } from '../configuration';
import { Pages } from '../pages';
import { popups } from '../popups';
import { Status } from '../status';
import { Server } from './server';

let server: Server | undefined;

/** Where the editor itself runs in a browser: vscode.dev, github.dev, and the web host of code-server. */
export function activate(context: vscode.ExtensionContext): void {
    const manifest: unknown = context.extension.packageJSON;
    const version = String((manifest as { version?: unknown }).version);
    const log = vscode.window.createOutputChannel('gradguard', { log: true });
    const status = new Status();
    const pages = new Pages();
    const files = vscode.Uri.joinPath(context.extensionUri, 'client', 'dist', 'web');
    const running = new Server(files, keysOfServer(manifest), { log, status, popups: popups(vscode.window, log) });
    server = running;
    log.info(`gradguard ${version} in ${vscode.env.appName} ${vscode.version}, in the browser`);
    // Hides what needs a machine: the monitor runs programs.
    void vscode.commands.executeCommand('setContext', 'gradguard.inBrowser', true);
    context.subscriptions.push(
        log,
        status,
        pages,
        running,
        ...commands({ version, platform: 'browser', log, server: running, pages }),
        vscode.workspace.onDidChangeConfiguration(change => {
            if (change.affectsConfiguration('gradguard.logLevel') || (change.affectsConfiguration('gradguard.enable') && !running.state.running)) {
                void running.restart('a setting changed');
            }
        }),
    );
    void running.restart('the extension was activated');
}

export async function deactivate(): Promise<void> {
    await server?.end();
    server = undefined;
}
