import * as vscode from 'vscode';

const SCHEME = 'gradguard';

/** Read-only pages made by the extension: explanations and the debug information. */
export class Pages implements vscode.Disposable, vscode.TextDocumentContentProvider {
    private readonly texts = new Map<string, string>();
    private readonly changed = new vscode.EventEmitter<vscode.Uri>();
    readonly onDidChange = this.changed.event;
    private readonly registration = vscode.workspace.registerTextDocumentContentProvider(SCHEME, this);

    provideTextDocumentContent(uri: vscode.Uri): string {
        return this.texts.get(uri.path) ?? '';
    }

    /** Shows Markdown as a preview beside the editor; as text where the Markdown extension is off. */
    async showMarkdown(name: string, text: string): Promise<void> {
        const uri = this.put(`${name}.md`, text);
        try {
            await vscode.commands.executeCommand('markdown.showPreviewToSide', uri);
        } catch {
            await vscode.window.showTextDocument(uri, { viewColumn: vscode.ViewColumn.Beside, preview: true });
        }
    }

    async showText(name: string, text: string, language: string): Promise<void> {
        const document = await vscode.workspace.openTextDocument(this.put(name, text));
        await vscode.languages.setTextDocumentLanguage(document, language);
        await vscode.window.showTextDocument(document, { preview: true });
    }

    dispose(): void {
        this.registration.dispose();
        this.changed.dispose();
    }

    private put(name: string, text: string): vscode.Uri {
        const uri = vscode.Uri.from({ scheme: SCHEME, path: `/${name}` });
        this.texts.set(uri.path, text);
        this.changed.fire(uri);
        return uri;
    }
}
