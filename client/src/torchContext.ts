import * as vscode from 'vscode';
import { usesTorch } from './usesTorch';

const KEY = 'gradguard.usesTorch';
const WAIT_MS = 500;

/** Keeps a context key for menus: whether the active editor's file uses torch. */
export function watchTorch(): vscode.Disposable {
    let shown: boolean | undefined;
    let timer: NodeJS.Timeout | undefined;
    const look = (): void => {
        const document = vscode.window.activeTextEditor?.document;
        const uses = document?.languageId === 'python' && usesTorch(document.getText());
        if (uses !== shown) {
            shown = uses;
            void vscode.commands.executeCommand('setContext', KEY, uses);
        }
    };
    const soon = (): void => {
        clearTimeout(timer);
        timer = setTimeout(look, WAIT_MS);
    };
    look();
    return vscode.Disposable.from(
        vscode.window.onDidChangeActiveTextEditor(look),
        vscode.workspace.onDidChangeTextDocument(change => {
            if (change.document === vscode.window.activeTextEditor?.document) {
                soon();
            }
        }),
        { dispose: () => clearTimeout(timer) },
    );
}
