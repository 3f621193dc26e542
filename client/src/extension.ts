import * as os from 'node:os';
import * as vscode from 'vscode';
import { commands } from './commands';
import { keysOfServer, needsNewServer } from './configuration';
import { Interpreters } from './interpreters';
import { monitorCommands } from './monitor';
import { popups } from './popups';
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
    const home = context.extensionPath;
    const running = new Server(home, keysOfServer(manifest), { log, status, popups: popups(vscode.window, log) }, interpreters);
    server = running;
    log.info(`gradguard ${version} in ${vscode.env.appName} ${vscode.version}`);
    context.subscriptions.push(
        log,
        status,
        pages,
        running,
        watchTorch(),
        ...commands({ version, platform: `${os.platform()} ${os.arch()} ${os.release()}`, log, server: running, pages }),
        ...monitorCommands({ home, interpreters }),
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
