// The language server in its worker, spoken to as an editor does.
import type { CodeAction, Diagnostic, Hover, Position, Range, WorkspaceEdit } from 'vscode-languageserver-protocol';
import type { Boot, Progress } from '../src/web/boot';

export const URI = 'untitled:program.py';

interface Message {
    readonly id?: number;
    readonly method?: string;
    readonly params?: { readonly version?: number; readonly diagnostics?: Diagnostic[] };
    readonly result?: unknown;
    readonly error?: { readonly message: string };
}

export interface Told {
    readonly diagnostics: (found: readonly Diagnostic[], version: number) => void;
    readonly ready: (fixes: boolean) => void;
    readonly failed: (why: string) => void;
}

export class Server {
    private readonly worker: Worker;
    private readonly waiting = new Map<number, { resolve: (value: never) => void; reject: (error: Error) => void }>();
    private numbers = 0;
    private version = 0;
    private fixes = false;

    constructor(
        script: string,
        boot: Boot,
        private readonly language: string,
        private readonly told: Told,
    ) {
        this.worker = new Worker(script);
        this.worker.onerror = event => told.failed(event.message);
        this.worker.onmessage = ({ data }: { data: Message | Progress }) => {
            if ('progress' in data) {
                this.progress(data);
            } else {
                this.receive(data);
            }
        };
        this.worker.postMessage(boot);
    }

    /** Begins with a text; whatever is typed meanwhile is told by `change`. */
    async open(text: string, settings: object): Promise<void> {
        await this.request('initialize', {
            processId: null,
            locale: this.language,
            clientInfo: { name: 'playground' },
            initializationOptions: { ...settings, diagnostics: 'push' },
            capabilities: {
                general: { positionEncodings: ['utf-16'] },
                textDocument: {
                    hover: { contentFormat: ['markdown'] },
                    publishDiagnostics: { relatedInformation: true, codeDescriptionSupport: true, tagSupport: { valueSet: [1] } },
                    codeAction: {
                        codeActionLiteralSupport: { codeActionKind: { valueSet: ['quickfix', 'refactor.rewrite', 'source.fixAll'] } },
                        dataSupport: true,
                        isPreferredSupport: true,
                        disabledSupport: true,
                        resolveSupport: { properties: ['edit'] },
                    },
                },
                workspace: { workspaceEdit: { documentChanges: true } },
            },
        });
        this.notify('initialized', {});
        this.version += 1;
        this.notify('textDocument/didOpen', { textDocument: { uri: URI, languageId: 'python', version: this.version, text } });
    }

    /** The version that answers about this text will have. */
    change(text: string): number {
        this.version += 1;
        this.notify('textDocument/didChange', { textDocument: { uri: URI, version: this.version }, contentChanges: [{ text }] });
        return this.version;
    }

    get current(): number {
        return this.version;
    }

    configure(settings: object): void {
        this.notify('workspace/didChangeConfiguration', { settings: { gradguard: settings } });
    }

    hover(position: Position): Promise<Hover | null> {
        return this.request('textDocument/hover', { textDocument: { uri: URI }, position });
    }

    actions(range: Range): Promise<CodeAction[] | null> {
        return this.request('textDocument/codeAction', { textDocument: { uri: URI }, range, context: { diagnostics: [] } });
    }

    async edit(action: CodeAction): Promise<WorkspaceEdit | undefined> {
        return action.edit ?? (await this.request<CodeAction>('codeAction/resolve', action)).edit;
    }

    command<T>(command: string, ...args: readonly unknown[]): Promise<T> {
        return this.request('workspace/executeCommand', { command, arguments: args });
    }

    private progress(data: Progress): void {
        if (data.progress === 'fixes') {
            this.fixes = data.there;
        } else if (data.progress === 'ready') {
            this.told.ready(this.fixes);
        } else {
            this.told.failed(data.error);
        }
    }

    private receive(message: Message): void {
        if (message.method === 'textDocument/publishDiagnostics') {
            this.told.diagnostics(message.params?.diagnostics ?? [], message.params?.version ?? 0);
        } else if (message.method === undefined && message.id !== undefined) {
            const asked = this.waiting.get(message.id);
            this.waiting.delete(message.id);
            if (message.error === undefined) {
                asked?.resolve(message.result as never);
            } else {
                asked?.reject(new Error(message.error.message));
            }
        } else if (message.method !== undefined && message.id !== undefined) {
            this.worker.postMessage({ jsonrpc: '2.0', id: message.id, result: null });
        }
    }

    private notify(method: string, params: unknown): void {
        this.worker.postMessage({ jsonrpc: '2.0', method, params });
    }

    private request<T>(method: string, params: unknown): Promise<T> {
        this.numbers += 1;
        const id = this.numbers;
        this.worker.postMessage({ jsonrpc: '2.0', id, method, params });
        return new Promise<T>((resolve, reject) => this.waiting.set(id, { resolve, reject }));
    }
}
