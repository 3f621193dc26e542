import * as vscode from 'vscode';
import type { WorkspaceEdit } from 'vscode-languageclient';
import { LanguageClient, State } from 'vscode-languageclient/browser';
import { Backoff } from '../backoff';
import { enabledSomewhere, optionsFor, quiet, saying } from '../client';
import { serverSettings } from '../configuration';
import { Heartbeat } from '../heartbeat';
import type { LanguageServer, ServerState } from '../languageServer';
import { OneAtATime } from '../oneAtATime';
import type { Popups } from '../popups';
import type { Status } from '../status';
import { Files, startWorker } from './starting';

/** Where an editor in a browser keeps texts: a repository that is not cloned, a folder of a machine, one that was opened in the browser. */
const SCHEMES = ['vscode-vfs', 'vscode-remote', 'file', 'tmp', 'vscode-test-web', 'untitled', 'vscode-notebook-cell'];
const STOP_PATIENCE_MS = 3_000;

const QuietClient = quiet(LanguageClient);
type QuietClient = InstanceType<typeof QuietClient>;

interface Info {
    readonly python: string;
    readonly torch: string;
}

/** Owns the one server, which is Python in a worker of this browser. */
export class Server implements LanguageServer, vscode.Disposable {
    private client: QuietClient | undefined;
    private worker: Worker | undefined;
    private restarts = 0;
    private disposed = false;
    private timer: ReturnType<typeof setTimeout> | undefined;
    private readonly backoff = new Backoff();
    private readonly heart = new Heartbeat(
        () => this.call('gradguard.server.ping'),
        () => this.ended('the server does not answer'),
    );
    private readonly turn = new OneAtATime(() => this.replace());

    constructor(
        private readonly files: Files,
        private readonly keys: readonly string[],
        private readonly log: vscode.LogOutputChannel,
        private readonly status: Status,
        private readonly popups: { readonly faults: Popups; readonly warnings: Popups },
    ) {}

    get state(): ServerState {
        return { running: this.client?.state === State.Running, restarts: this.restarts };
    }

    async restart(reason: string): Promise<void> {
        this.log.info(`starting the server: ${reason}`);
        this.backoff.reset();
        await this.turn.request();
    }

    async call<T>(command: string, ...args: readonly unknown[]): Promise<T> {
        const client = this.client;
        if (client?.state !== State.Running) {
            throw new Error(vscode.l10n.t('The gradguard server is not running.'));
        }
        return client.sendRequest<T>('workspace/executeCommand', { command, arguments: args });
    }

    async apply(edit: WorkspaceEdit): Promise<boolean> {
        const converted = await this.client?.protocol2CodeConverter.asWorkspaceEdit(edit);
        return converted !== undefined && vscode.workspace.applyEdit(converted);
    }

    uri(uri: vscode.Uri): string {
        return this.client?.code2ProtocolConverter.asUri(uri) ?? uri.toString();
    }

    dispose(): void {
        void this.end();
    }

    async end(): Promise<void> {
        this.disposed = true;
        clearTimeout(this.timer);
        await this.stop();
    }

    private async replace(): Promise<void> {
        clearTimeout(this.timer);
        await this.stop();
        if (this.disposed) {
            return;
        }
        if (!enabledSomewhere()) {
            this.status.off();
            return;
        }
        this.status.starting();
        const began = Date.now();
        try {
            const level = vscode.workspace.getConfiguration('gradguard').get<string>('logLevel', 'info');
            const { worker, fixes } = await startWorker(this.files, level, this.log);
            this.worker = worker;
            this.log.info(`Python runs in the browser after ${Date.now() - began} ms${fixes ? '' : '; fixes cannot be written: libcst was not loaded'}`);
            const options = optionsFor({
                log: this.log,
                schemes: SCHEMES,
                settings: folder => Promise.resolve(serverSettings(this.keys, folder)),
                closed: () => {
                    if (this.client === client) {
                        this.ended('the server ended by itself');
                    }
                },
            });
            const client: QuietClient = new QuietClient('gradguard', 'gradguard', options, worker);
            client.tellBy(this.log, saying(this.popups.faults, this.log), saying(this.popups.warnings, this.log));
            client.onNotification('$/gradguard/settingsProblems', ({ problems }: { problems: readonly string[] }) => this.status.problems(problems));
            this.client = client;
            await client.start();
            this.heart.begin();
            const info = client.initializeResult?.serverInfo;
            this.log.info(`${info?.name ?? 'server'} ${info?.version ?? ''} ready after ${Date.now() - began} ms`);
            const { python, torch } = await this.call<Info>('gradguard.server.info');
            const warning = fixes ? undefined : vscode.l10n.t('Fixes cannot be written: libcst was not loaded.');
            this.status.running({ version: info?.version ?? '', python, interpreter: vscode.l10n.t('in the browser'), torch, warning });
        } catch (error) {
            this.ended(`the server did not start: ${error instanceof Error ? error.message : String(error)}`);
        }
    }

    /** It ended, or might as well have, and nobody asked it to. */
    private ended(why: string): void {
        if (this.disposed) {
            return;
        }
        this.log.error(why);
        void this.stop();
        const delay = this.backoff.ended(Date.now());
        if (delay === undefined) {
            const message = vscode.l10n.t('The gradguard server ended several times and was not started again.');
            this.status.failed(message);
            void this.popups.faults.say(message, {
                [vscode.l10n.t('Restart')]: () => this.restart('asked for in the message'),
                [vscode.l10n.t('Show Log')]: () => this.log.show(),
            });
            return;
        }
        this.restarts += 1;
        this.status.starting();
        clearTimeout(this.timer);
        this.timer = setTimeout(() => void this.turn.request(), delay);
    }

    private async stop(): Promise<void> {
        const { client, worker } = this;
        this.client = undefined;
        this.worker = undefined;
        this.heart.end();
        if (client !== undefined) {
            client.ending = true;
            try {
                await client.dispose(STOP_PATIENCE_MS);
            } catch (error) {
                this.log.debug(`the server did not end in order: ${String(error)}`);
            }
        }
        worker?.terminate();
    }
}
