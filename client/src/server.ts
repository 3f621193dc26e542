import * as vscode from 'vscode';
import { LanguageClient, ServerOptions, State, TransportKind, WorkspaceEdit } from 'vscode-languageclient/node';
import { Backoff } from './backoff';
import { Heartbeat } from './heartbeat';
import { enabledSomewhere, optionsFor, quiet, saying } from './client';
import { clientSettings } from './clientSettings';
import { serverSettings } from './configuration';
import { Choice, commandOf, Interpreter } from './interpreter';
import { Interpreters, mainFolder } from './interpreters';
import type { LanguageServer, ServerState } from './languageServer';
import { Launch, launch, launchGiven } from './launch';
import { OneAtATime } from './oneAtATime';
import type { Popups } from './popups';
import type { Status } from './status';

const SCHEMES = ['file', 'untitled', 'vscode-vfs', 'vscode-notebook-cell'];

const STOP_PATIENCE_MS = 3_000;

const QuietClient = quiet(LanguageClient);
type QuietClient = InstanceType<typeof QuietClient>;

/** Owns the one server process: starts it, starts it again, says what became of it. */
export class Server implements LanguageServer, vscode.Disposable {
    private client: QuietClient | undefined;
    private launched: Launch | undefined;
    private choice: Choice | undefined;
    private restarts = 0;
    private disposed = false;
    private timer: NodeJS.Timeout | undefined;
    private readonly backoff = new Backoff();
    private readonly heart = new Heartbeat(
        () => this.call('gradguard.server.ping'),
        () => this.hangs(),
    );
    private readonly turn = new OneAtATime(() => this.replace());

    constructor(
        private readonly home: string,
        private readonly keys: readonly string[],
        private readonly log: vscode.LogOutputChannel,
        private readonly status: Status,
        private readonly popups: { readonly faults: Popups; readonly warnings: Popups },
        private readonly interpreters: Interpreters,
    ) {}

    /** Starts the server, or ends it and starts another; what is known about interpreters is asked anew. */
    async restart(reason: string): Promise<void> {
        this.log.info(`starting the server: ${reason}`);
        this.backoff.reset();
        this.interpreters.forget();
        await this.turn.request();
    }

    get state(): ServerState {
        return { running: this.client?.state === State.Running, launch: this.launched, choice: this.choice, restarts: this.restarts };
    }

    /** Runs a command of the server. Throws when no server runs or when the command fails there. */
    async call<T>(command: string, ...args: readonly unknown[]): Promise<T> {
        const client = this.client;
        if (client?.state !== State.Running) {
            throw new Error(vscode.l10n.t('The gradguard server is not running.'));
        }
        return client.sendRequest<T>('workspace/executeCommand', { command, arguments: args });
    }

    /** Applies an edit of the server as one step of undoing. */
    async apply(edit: WorkspaceEdit): Promise<boolean> {
        const converted = await this.client?.protocol2CodeConverter.asWorkspaceEdit(edit);
        return converted !== undefined && vscode.workspace.applyEdit(converted);
    }

    /** As the protocol names it, for a document of the editor. */
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
        const folder = mainFolder();
        const settings = clientSettings(folder);
        this.choice = await this.interpreters.of(folder);
        const interpreter = this.choice.interpreter;
        const args = ['server', '--log-level', settings.logLevel, ...settings.args];
        if (settings.path.length > 0 && vscode.workspace.isTrusted) {
            this.launched = launchGiven(settings.path, args);
        } else if (interpreter !== undefined) {
            const importStrategy = vscode.workspace.isTrusted ? settings.importStrategy : 'useBundled';
            this.launched = launch({ home: this.home, interpreter: commandOf(interpreter), importStrategy, args });
        } else {
            this.launched = undefined;
            await this.noPython();
            return;
        }
        await this.run(this.launched, interpreter);
    }

    private async run(launched: Launch, interpreter: Interpreter | undefined): Promise<void> {
        this.log.info(`running ${[launched.command, ...launched.args].join(' ')}`);
        const serverOptions: ServerOptions = {
            command: launched.command,
            args: [...launched.args],
            options: { env: { ...process.env, ...launched.env } },
            transport: TransportKind.stdio,
        };
        const options = optionsFor({ log: this.log, schemes: SCHEMES, settings: folder => this.settings(folder), closed: () => this.ended(client) });
        const client: QuietClient = new QuietClient('gradguard', 'gradguard', serverOptions, options);
        client.tellBy(this.log, saying(this.popups.faults, this.log), saying(this.popups.warnings, this.log));
        client.onNotification('$/gradguard/settingsProblems', ({ problems }: { problems: readonly string[] }) => this.status.problems(problems));
        this.client = client;
        const began = Date.now();
        try {
            await client.start();
        } catch (error) {
            this.log.error(`the server did not start: ${error instanceof Error ? error.message : String(error)}`);
            this.ended(client);
            return;
        }
        if (this.client !== client) {
            return; // it ended before it answered, which was told
        }
        if (client.state !== State.Running || client.initializeResult === undefined) {
            this.log.error('the server ended before it was ready');
            this.ended(client);
            return;
        }
        this.heart.begin();
        const info = client.initializeResult.serverInfo;
        this.log.info(`${info?.name ?? 'server'} ${info?.version ?? ''} ready after ${Date.now() - began} ms`);
        const warning = this.choice?.settingFailed === true ? vscode.l10n.t('the Python named by "gradguard.interpreter" cannot be used') : undefined;
        const facts = { version: info?.version ?? '', python: interpreter?.version.join('.') ?? '', interpreter: interpreter?.executable ?? launched.command, warning };
        this.status.running(facts);
        const torch = await this.torchTable();
        if (torch !== undefined && this.client === client) {
            this.status.running({ ...facts, torch });
        }
    }

    private async torchTable(): Promise<string | undefined> {
        try {
            return (await this.call<{ torch?: string } | null>('gradguard.server.info'))?.torch;
        } catch (error) {
            this.log.debug(`no torch table told: ${String(error)}`);
            return undefined;
        }
    }

    /** Where the version of torch is not set, the one beside the folder's Python decides. */
    private async settings(folder: vscode.Uri | undefined): Promise<Record<string, unknown>> {
        const torch = (await this.interpreters.of(folder ?? mainFolder())).interpreter?.torch;
        return { ...(torch === undefined ? {} : { torchVersion: torch }), ...serverSettings(this.keys, folder) };
    }

    /** The server ended and nobody asked it to. */
    private ended(client: QuietClient): void {
        if (this.disposed || this.client !== client) {
            return;
        }
        this.client = undefined;
        this.heart.end();
        void this.letGo(client);
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
        this.log.warn(`the server ended by itself; it is started again in ${delay} ms`);
        this.status.starting();
        this.timer = setTimeout(() => void this.turn.request(), delay);
    }

    /** It runs and answers nothing: the same as if it had ended. */
    private hangs(): void {
        const client = this.client;
        if (client !== undefined) {
            this.log.error('the server does not answer; it is ended');
            this.ended(client);
        }
    }

    private async noPython(): Promise<void> {
        const message = vscode.l10n.t('gradguard needs Python 3.10 or newer and found none.');
        this.status.failed(message);
        void this.popups.faults.say(message, {
            [vscode.l10n.t('Choose Python')]: () => vscode.commands.executeCommand('workbench.action.openSettings', 'gradguard.interpreter'),
            [vscode.l10n.t('Show Log')]: () => this.log.show(),
        });
    }

    private async stop(): Promise<void> {
        const client = this.client;
        this.client = undefined;
        this.heart.end();
        if (client !== undefined) {
            await this.letGo(client);
        }
    }

    private async letGo(client: QuietClient): Promise<void> {
        client.ending = true;
        try {
            await client.dispose(STOP_PATIENCE_MS);
        } catch (error) {
            this.log.debug(`the server did not end in order: ${error instanceof Error ? error.message : String(error)}`);
        }
    }
}
