import * as vscode from 'vscode';
import { LanguageClient, LanguageClientOptions, ServerOptions, TransportKind } from 'vscode-languageclient/node';
import { quiet } from './client';
import { clientSettings } from './clientSettings';
import { serverSettings } from './configuration';
import { Connection, type Listeners, type Made, type Ready } from './connection';
import { Choice, commandOf } from './interpreter';
import { Interpreters, mainFolder } from './interpreters';
import type { ServerState } from './languageServer';
import { Launch, launch, launchGiven } from './launch';

const SCHEMES = ['file', 'untitled', 'vscode-vfs', 'vscode-notebook-cell'];

const QuietClient = quiet(LanguageClient);

/** The server as a process of this machine, run by the Python that is chosen for its folder. */
export class Server extends Connection {
    private launched: Launch | undefined;
    private choice: Choice | undefined;

    constructor(
        private readonly home: string,
        private readonly keys: readonly string[],
        tell: Listeners,
        private readonly interpreters: Interpreters,
    ) {
        super(tell, SCHEMES);
    }

    override get state(): ServerState {
        return { ...super.state, launch: this.launched, choice: this.choice };
    }

    /** What is known about interpreters is asked anew. */
    override async restart(reason: string): Promise<void> {
        this.interpreters.forget();
        await super.restart(reason);
    }

    protected override async make(options: LanguageClientOptions): Promise<Made | undefined> {
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
            this.failed(vscode.l10n.t('gradguard needs Python 3.10 or newer and found none.'), {
                [vscode.l10n.t('Choose Python')]: () => vscode.commands.executeCommand('workbench.action.openSettings', 'gradguard.interpreter'),
            });
            return undefined;
        }
        const { command, args: words, env } = this.launched;
        this.tell.log.info(`running ${[command, ...words].join(' ')}`);
        const run: ServerOptions = { command, args: [...words], options: { env: { ...process.env, ...env } }, transport: TransportKind.stdio };
        return { client: new QuietClient('gradguard', 'gradguard', run, options) };
    }

    protected override ready(): Promise<Ready> {
        const interpreter = this.choice?.interpreter;
        const warning = this.choice?.settingFailed === true ? vscode.l10n.t('the Python named by "gradguard.interpreter" cannot be used') : undefined;
        return Promise.resolve({
            python: interpreter?.version.join('.') ?? '',
            interpreter: interpreter?.executable ?? this.launched?.command ?? '',
            warning,
        });
    }

    /** Where the version of torch is not set, the one beside the folder's Python decides. */
    protected override async settings(folder: vscode.Uri | undefined): Promise<Record<string, unknown>> {
        const torch = (await this.interpreters.of(folder ?? mainFolder())).interpreter?.torch;
        return { ...(torch === undefined ? {} : { torchVersion: torch }), ...serverSettings(this.keys, folder) };
    }
}
