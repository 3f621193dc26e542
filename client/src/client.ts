import * as vscode from 'vscode';
import {
    ConfigurationParams,
    DynamicFeature,
    ExecuteCommandRequest,
    LanguageClient,
    LanguageClientOptions,
    MessageType,
    ServerOptions,
    ShowMessageNotification,
    ShowMessageRequest,
    StaticFeature,
} from 'vscode-languageclient/node';

/** What of the server's messages to the user is shown is decided in one place for the whole extension. */
export type Say = (message: string, buttons: readonly string[]) => Promise<string | undefined>;

/**
 * The library's client without pop-ups of its own. It also leaves the server's commands unregistered: those
 * that a person can call are commands of this extension, and two registrations of one name are an error.
 */
export class QuietClient extends LanguageClient {
    constructor(
        serverOptions: ServerOptions,
        clientOptions: LanguageClientOptions,
        private readonly channel: vscode.LogOutputChannel,
        say: Say,
        warn: Say,
    ) {
        super('gradguard', 'gradguard', serverOptions, clientOptions);
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
        this.channel.debug(line(message, data));
    }

    override info(message: string, data?: unknown, _notify?: boolean): void {
        this.channel.info(line(message, data));
    }

    override warn(message: string, data?: unknown, _notify?: boolean): void {
        this.channel.warn(line(message, data));
    }

    override error(message: string, data?: unknown, _notify?: boolean | 'force'): void {
        if (this.ending) {
            this.channel.debug(line(message, data));
        } else {
            this.channel.error(line(message, data));
        }
    }
}

/** The channel has a stamp and the level for each line: the library's own would come on top. */
function line(message: string, data: unknown): string {
    if (data === undefined || data === null) {
        return message;
    }
    return `${message}\n${data instanceof Error ? (data.stack ?? data.message) : typeof data === 'string' ? data : JSON.stringify(data)}`;
}

/** Folder that a configuration request is about. */
export function folderOf(item: ConfigurationParams['items'][number]): vscode.Uri | undefined {
    if (item.scopeUri === undefined) {
        return undefined;
    }
    const uri = vscode.Uri.parse(item.scopeUri);
    return vscode.workspace.getWorkspaceFolder(uri)?.uri;
}
