import * as vscode from 'vscode';
import { State, type LanguageClientOptions, type WorkspaceEdit } from 'vscode-languageclient';
import { Backoff } from './backoff';
import { enabledSomewhere, optionsFor, type quiet, saying } from './client';
import { Heartbeat } from './heartbeat';
import type { LanguageServer, ServerState } from './languageServer';
import { OneAtATime } from './oneAtATime';
import type { Popups } from './popups';
import type { Status } from './status';

const STOP_PATIENCE_MS = 3_000;

export type QuietClient = InstanceType<ReturnType<typeof quiet>>;

/** Who the server's life is told to. */
export interface Listeners {
    readonly log: vscode.LogOutputChannel;
    readonly status: Status;
    readonly popups: { readonly faults: Popups; readonly warnings: Popups };
}

/** What is said of a server that is ready. */
export interface Ready {
    readonly python: string;
    readonly interpreter: string;
    readonly warning?: string | undefined;
}

/** A client that is not started, and what lets go of the place its server runs in. */
export interface Made {
    readonly client: QuietClient;
    readonly release?: () => void;
}

/** Owns the one server, wherever that runs: starts it, starts it again, says what became of it. */
export abstract class Connection implements LanguageServer, vscode.Disposable {
    private made: Made | undefined;
    private restarts = 0;
    private disposed = false;
    private timer: ReturnType<typeof setTimeout> | undefined;
    private readonly backoff = new Backoff();
    private readonly heart = new Heartbeat(
        () => this.call('gradguard.server.ping'),
        () => this.hangs(),
    );
    private readonly turn = new OneAtATime(() => this.replace());

    constructor(
        protected readonly tell: Listeners,
        private readonly schemes: readonly string[],
    ) {}

    /** Undefined where no server can be started, which has been told. */
    protected abstract make(options: LanguageClientOptions): Promise<Made | undefined>;

    /** What the status says of the server that has just become ready; asked once for each start. */
    protected abstract ready(): Promise<Ready>;

    /** What the server is told of the settings of a folder. */
    protected abstract settings(folder: vscode.Uri | undefined): Promise<Record<string, unknown>>;

    private get client(): QuietClient | undefined {
        return this.made?.client;
    }

    get state(): ServerState {
        return { running: this.client?.state === State.Running, restarts: this.restarts };
    }

    async restart(reason: string): Promise<void> {
        this.tell.log.info(`starting the server: ${reason}`);
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

    /** Tells that there is no server, with buttons that may help. */
    protected failed(message: string, buttons: Record<string, () => unknown>): void {
        const { log, popups, status } = this.tell;
        status.failed(message);
        void popups.faults.say(message, { ...buttons, [vscode.l10n.t('Show Log')]: () => log.show() });
    }

    private async replace(): Promise<void> {
        clearTimeout(this.timer);
        await this.stop();
        if (this.disposed) {
            return;
        }
        if (!enabledSomewhere()) {
            this.tell.status.off();
            return;
        }
        this.tell.status.starting();
        const began = Date.now();
        let made: Made | undefined;
        try {
            const closed = (): void => this.ended(made, 'the server ended by itself');
            made = await this.make(optionsFor({ log: this.tell.log, schemes: this.schemes, settings: folder => this.settings(folder), closed }));
            if (made !== undefined) {
                await this.begin(made, began);
            }
        } catch (error) {
            this.ended(made, `the server did not start: ${error instanceof Error ? error.message : String(error)}`);
        }
    }

    private async begin(made: Made, began: number): Promise<void> {
        const { client } = made;
        const { log, popups, status } = this.tell;
        client.tellBy(log, saying(popups.faults, log), saying(popups.warnings, log));
        client.onNotification('$/gradguard/settingsProblems', ({ problems }: { problems: readonly string[] }) => status.problems(problems));
        this.made = made;
        await client.start();
        if (this.made !== made) {
            return; // it ended before it answered, which was told
        }
        if (client.state !== State.Running || client.initializeResult === undefined) {
            this.ended(made, 'the server ended before it was ready');
            return;
        }
        this.heart.begin();
        const info = client.initializeResult.serverInfo;
        log.info(`${info?.name ?? 'server'} ${info?.version ?? ''} ready after ${Date.now() - began} ms`);
        const facts = { version: info?.version ?? '', ...(await this.ready()) };
        status.running(facts);
        const torch = await this.torchTable();
        if (torch !== undefined && this.made === made) {
            status.running({ ...facts, torch });
        }
    }

    private async torchTable(): Promise<string | undefined> {
        try {
            return (await this.call<{ torch?: string } | null>('gradguard.server.info'))?.torch;
        } catch (error) {
            this.tell.log.debug(`no torch table told: ${String(error)}`);
            return undefined;
        }
    }

    /** It ended, or might as well have, and nobody asked it to. */
    private ended(made: Made | undefined, why: string): void {
        if (this.disposed || this.made !== made) {
            return;
        }
        this.tell.log.error(why);
        void this.stop();
        const delay = this.backoff.ended(Date.now());
        if (delay === undefined) {
            this.failed(vscode.l10n.t('The gradguard server ended several times and was not started again.'), {
                [vscode.l10n.t('Restart')]: () => this.restart('asked for in the message'),
            });
            return;
        }
        this.restarts += 1;
        this.tell.log.warn(`it is started again in ${delay} ms`);
        this.tell.status.starting();
        clearTimeout(this.timer);
        this.timer = setTimeout(() => void this.turn.request(), delay);
    }

    /** It runs and answers nothing: the same as if it had ended. */
    private hangs(): void {
        if (this.made !== undefined) {
            this.ended(this.made, 'the server does not answer; it is ended');
        }
    }

    private async stop(): Promise<void> {
        const made = this.made;
        this.made = undefined;
        this.heart.end();
        if (made === undefined) {
            return;
        }
        made.client.ending = true;
        try {
            await made.client.dispose(STOP_PATIENCE_MS);
        } catch (error) {
            this.tell.log.debug(`the server did not end in order: ${error instanceof Error ? error.message : String(error)}`);
        }
        made.release?.();
    }
}
