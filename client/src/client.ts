import * as vscode from 'vscode';
import {
    BaseLanguageClient,
    CloseAction,
    ConfigurationParams,
    DynamicFeature,
    ErrorAction,
    ExecuteCommandRequest,
    LanguageClientOptions,
    MessageTransports,
    MessageType,
    RevealOutputChannelOn,
    ShowMessageNotification,
    ShowMessageRequest,
    StaticFeature,
} from 'vscode-languageclient';
import type { Popups } from './popups';

/** What of the server's messages to the user is shown is decided in one place for the whole extension. */
export type Say = (message: string, buttons: readonly string[]) => Promise<string | undefined>;

/** What both of the library's clients are. */
declare class Whole extends BaseLanguageClient {
    protected createMessageTransports(encoding: string): Promise<MessageTransports>;
}

/**
 * One of the library's clients, that of Node or that of a browser, without pop-ups of its own. It also leaves the server's commands
 * unregistered: those that a person can call are commands of this extension, and two registrations of one name are an error.
 */
export function quiet(base: new (...args: any[]) => BaseLanguageClient) {
    return class extends (base as unknown as new (...args: any[]) => Whole) {
        private channel: vscode.LogOutputChannel | undefined;

        /** Before it is started: where its own log goes, and who shows what the server tells its user. */
        tellBy(channel: vscode.LogOutputChannel, say: Say, warn: Say): void {
            this.channel = channel;
            this.onNotification(ShowMessageNotification.type, async ({ type, message }) => {
                if (type === MessageType.Error) {
                    await say(message, []);
                } else if (type === MessageType.Warning) {
                    await warn(message, []);
                } else {
                    this.info(message);
                }
            });
            this.onRequest(ShowMessageRequest.type, async ({ message, actions }) => {
                const title = await say(message, (actions ?? []).map(action => action.title));
                return actions?.find(action => action.title === title) ?? null;
            });
        }

        override registerFeature(feature: StaticFeature | DynamicFeature<unknown>): void {
            if ('registrationType' in feature && feature.registrationType.method === ExecuteCommandRequest.method) {
                return;
            }
            super.registerFeature(feature);
        }

        /** Set when the server is to end: what its end breaks off is no error. */
        ending = false;

        override debug(message: string, data?: unknown, _notify?: boolean): void {
            this.channel?.debug(line(message, data));
        }

        override info(message: string, data?: unknown, _notify?: boolean): void {
            this.channel?.info(line(message, data));
        }

        override warn(message: string, data?: unknown, _notify?: boolean): void {
            this.channel?.warn(line(message, data));
        }

        override error(message: string, data?: unknown, _notify?: boolean | 'force'): void {
            if (this.ending) {
                this.channel?.debug(line(message, data));
            } else {
                this.channel?.error(line(message, data));
            }
        }
    };
}

/** The channel has a stamp and the level for each line: the library's own would come on top. */
function line(message: string, data: unknown): string {
    if (data === undefined || data === null) {
        return message;
    }
    return `${message}\n${data instanceof Error ? (data.stack ?? data.message) : typeof data === 'string' ? data : JSON.stringify(data)}`;
}

export interface Behaviour {
    readonly log: vscode.LogOutputChannel;
    readonly schemes: readonly string[];
    /** What the server is told of the settings of a folder. */
    readonly settings: (folder: vscode.Uri | undefined) => Promise<Record<string, unknown>>;
    readonly closed: () => void;
}

/** What both clients do alike. */
export function optionsFor({ log, schemes, settings, closed }: Behaviour): LanguageClientOptions {
    return {
        documentSelector: schemes.map(scheme => ({ scheme, language: 'python' })),
        diagnosticCollectionName: 'gradguard',
        outputChannel: log,
        revealOutputChannelOn: RevealOutputChannelOn.Never,
        // Pushed as soon as they are known: this version of the library asks for those of editors only, not of notebook cells.
        initializationOptions: { diagnostics: 'push', status: true },
        markdown: { isTrusted: false, supportHtml: false },
        initializationFailedHandler: () => false,
        errorHandler: {
            error: () => ({ action: ErrorAction.Continue, handled: true }),
            closed: () => {
                closed();
                return { action: CloseAction.DoNotRestart, handled: true };
            },
        },
        middleware: {
            workspace: {
                configuration: async (params, token, next) => {
                    const values = await next(params, token);
                    if (!Array.isArray(values)) {
                        return values;
                    }
                    return Promise.all(params.items.map((item, n) => (item.section === 'gradguard' ? settings(folderOf(item)) : values[n])));
                },
            },
        },
    };
}

/** Shows what a server says through `popups`; a message without buttons leads to the log. */
export function saying(popups: Popups, log: vscode.LogOutputChannel): Say {
    return async (message, buttons) => {
        let chosen: string | undefined;
        const choose = (button: string) => (): void => {
            chosen = button;
        };
        const showLog = vscode.l10n.t('Show Log');
        await popups.say(message, {
            ...Object.fromEntries(buttons.map(button => [button, choose(button)])),
            ...(buttons.length === 0 ? { [showLog]: () => log.show() } : {}),
        });
        return chosen;
    };
}

export function enabledSomewhere(): boolean {
    const folders = vscode.workspace.workspaceFolders ?? [undefined];
    return folders.some(folder => vscode.workspace.getConfiguration('gradguard', folder?.uri ?? null).get<boolean>('enable', true));
}

/** Folder that a configuration request is about. */
function folderOf(item: ConfigurationParams['items'][number]): vscode.Uri | undefined {
    if (item.scopeUri === undefined) {
        return undefined;
    }
    const uri = vscode.Uri.parse(item.scopeUri);
    return vscode.workspace.getWorkspaceFolder(uri)?.uri;
}
