import type { WorkspaceEdit } from 'vscode-languageclient';
import type { Choice } from './interpreter';
import type { Launch } from './launch';

/** What the debug information tells about the server. */
export interface ServerState {
    readonly running: boolean;
    readonly launch?: Launch | undefined;
    readonly choice?: Choice | undefined;
    readonly restarts: number;
}

/** The one server, be it a process of this machine or a worker of the browser. */
export interface LanguageServer {
    readonly state: ServerState;
    restart(reason: string): Promise<void>;
    /** Runs a command of the server. Throws when no server runs or when the command fails there. */
    call<T>(command: string, ...args: readonly unknown[]): Promise<T>;
    /** Applies an edit of the server as one step of undoing. */
    apply(edit: WorkspaceEdit): Promise<boolean>;
    /** As the protocol names it, for a document of the editor. */
    uri(uri: { toString(): string }): string;
}
