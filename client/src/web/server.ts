import * as vscode from 'vscode';
import { LanguageClient, LanguageClientOptions } from 'vscode-languageclient/browser';
import { quiet } from '../client';
import { serverSettings } from '../configuration';
import { Connection, type Listeners, type Made, type Ready } from '../connection';
import { Files, startWorker } from './starting';

/** Where an editor in a browser keeps texts: a repository that is not cloned, a folder of a machine, one that was opened in the browser. */
const SCHEMES = ['vscode-vfs', 'vscode-remote', 'file', 'tmp', 'vscode-test-web', 'untitled', 'vscode-notebook-cell'];

const QuietClient = quiet(LanguageClient);

/** The server as Python in a worker of this browser. */
export class Server extends Connection {
    private fixes = true;

    constructor(
        private readonly files: Files,
        private readonly keys: readonly string[],
        tell: Listeners,
    ) {
        super(tell, SCHEMES);
    }

    protected override async make(options: LanguageClientOptions): Promise<Made> {
        const began = Date.now();
        const level = vscode.workspace.getConfiguration('gradguard').get<string>('logLevel', 'info');
        const { worker, fixes } = await startWorker(this.files, level, this.tell.log);
        this.fixes = fixes;
        this.tell.log.info(`Python runs in the browser after ${Date.now() - began} ms${fixes ? '' : '; fixes cannot be written: libcst was not loaded'}`);
        return { client: new QuietClient('gradguard', 'gradguard', options, worker), release: () => worker.terminate() };
    }

    protected override async ready(): Promise<Ready> {
        const { python } = await this.call<{ python: string }>('gradguard.server.info');
        const warning = this.fixes ? undefined : vscode.l10n.t('Fixes cannot be written: libcst was not loaded.');
        return { python, interpreter: vscode.l10n.t('in the browser'), warning };
    }

    protected override settings(folder: vscode.Uri | undefined): Promise<Record<string, unknown>> {
        return Promise.resolve(serverSettings(this.keys, folder));
    }
}
