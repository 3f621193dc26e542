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
    constructor(serverOptions: ServerOptions, clientOptions: LanguageClientOptions, say: Say, warn: Say) {
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

    override info(message: string, data?: unknown, _notify?: boolean): void {
        super.info(message, data, false);
    }

    override warn(message: string, data?: unknown, _notify?: boolean): void {
        super.warn(message, data, false);
    }

    override error(message: string, data?: unknown, _notify?: boolean | 'force'): void {
        super.error(message, data, false);
    }
}

/** Folder that a configuration request is about. */
export function folderOf(item: ConfigurationParams['items'][number]): vscode.Uri | undefined {
    if (item.scopeUri === undefined) {
        return undefined;
    }
    const uri = vscode.Uri.parse(item.scopeUri);
    return vscode.workspace.getWorkspaceFolder(uri)?.uri;
}
