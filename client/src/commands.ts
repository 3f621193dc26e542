import * as vscode from 'vscode';
import type { WorkspaceEdit } from 'vscode-languageclient';
import { debugInformation } from './debugInformation';
import type { LanguageServer } from './languageServer';
import type { Pages } from './pages';

const SHOW_RULE = 'gradguard.showRule';
const SHOW_ALL = 'gradguard.showAll';
const SELECT = 'gradguard.select';

export interface Parts {
    readonly version: string;
    /** The machine, or the browser, for bug reports. */
    readonly platform: string;
    readonly log: vscode.LogOutputChannel;
    readonly server: LanguageServer;
    readonly pages: Pages;
}

/** Registers the commands that there are wherever the server runs. */
export function commands(parts: Parts): vscode.Disposable[] {
    const table: Readonly<Record<string, (...args: never[]) => unknown>> = {
        'gradguard.restart': () => parts.server.restart('asked for by command'),
        'gradguard.showLog': () => parts.log.show(),
        'gradguard.showDebugInformation': () => showDebugInformation(parts),
        'gradguard.explain': () => explain(parts),
        'gradguard.fixAll': () => fixAll(parts),
        'gradguard.checkWorkspace': () => checkWorkspace(parts),
    };
    // What entries of the quick fix menu call; no command for people.
    const inner: Readonly<Record<string, (...args: never[]) => unknown>> = {
        [SHOW_RULE]: (rule: string) => showRule(parts, rule),
        [SHOW_ALL]: (rule: string) => showAll(parts, rule),
        [SELECT]: (uri: string, line: number, start: number, end: number) => select(uri, line, start, end),
    };
    return Object.entries({ ...table, ...inner }).map(([name, run]) => vscode.commands.registerCommand(name, run));
}

async function showDebugInformation(parts: Parts): Promise<void> {
    let server: string | undefined;
    let problem: string | undefined;
    try {
        const document = vscode.window.activeTextEditor?.document;
        server = await parts.server.call<string>('gradguard.server.debugInformation', document === undefined ? null : parts.server.uri(document.uri));
    } catch (error) {
        problem = error instanceof Error ? error.message : String(error);
    }
    const page = debugInformation({
        extension: parts.version,
        editor: `${vscode.env.appName} ${vscode.version}`,
        platform: parts.platform,
        trusted: vscode.workspace.isTrusted,
        folders: (vscode.workspace.workspaceFolders ?? []).map(folder => folder.uri.fsPath),
        state: parts.server.state,
        server,
        problem,
    });
    await parts.pages.showText('gradguard debug information.md', page, 'markdown');
}

/**
 * The Python editor that a command is about: the active one, else one that is open, which is brought to the front.
 * A command also comes from a page that is no editor of text, such as the walkthrough.
 */
async function pythonEditor(): Promise<vscode.TextEditor | undefined> {
    const active = vscode.window.activeTextEditor;
    if (active !== undefined) {
        return active;
    }
    const open = vscode.window.tabGroups.all.flatMap(group => group.tabs.map(tab => ({ input: tab.input, viewColumn: group.viewColumn })));
    for (const { input, viewColumn } of open) {
        if (input instanceof vscode.TabInputText) {
            const document = await vscode.workspace.openTextDocument(input.uri);
            if (document.languageId === 'python') {
                return vscode.window.showTextDocument(document, { viewColumn });
            }
        }
    }
    vscode.window.setStatusBarMessage(vscode.l10n.t('gradguard: open a Python file first.'), 5_000);
    return undefined;
}

async function explain(parts: Parts): Promise<void> {
    const editor = await pythonEditor();
    if (editor === undefined || !(await serverRuns(parts))) {
        return;
    }
    const position = { line: editor.selection.active.line, character: editor.selection.active.character };
    const page = await parts.server.call<{ title: string; text: string } | null>('gradguard.server.explain', parts.server.uri(editor.document.uri), position);
    if (page === null) {
        vscode.window.setStatusBarMessage(vscode.l10n.t('gradguard knows nothing to explain here.'), 5_000);
        return;
    }
    await parts.pages.showMarkdown(page.title, page.text);
}

/** Selects what stands on a line of the document that an action has just edited, for people to write over. */
async function select(uri: string, line: number, start: number, end: number): Promise<void> {
    const editor = vscode.window.visibleTextEditors.find(each => each.document.uri.toString() === vscode.Uri.parse(uri).toString());
    if (editor !== undefined) {
        editor.selection = new vscode.Selection(line, start, line, end);
    }
}

/** A list of what is shown of one rule, wherever that is; choosing one leads there. */
async function showAll(parts: Parts, rule: string): Promise<void> {
    const code = (each: vscode.Diagnostic): unknown => (typeof each.code === 'object' ? each.code.value : each.code);
    const items = vscode.languages.getDiagnostics().flatMap(([uri, found]) =>
        found
            .filter(each => each.source === 'gradguard' && code(each) === rule)
            .map(each => ({ label: each.message, description: `${vscode.workspace.asRelativePath(uri)}:${each.range.start.line + 1}`, uri, range: each.range })),
    );
    parts.log.info(`${items.length} of ${rule} are shown`);
    const chosen = await vscode.window.showQuickPick(items, { title: vscode.l10n.t('gradguard: {0} of {1}', items.length, rule), matchOnDescription: true });
    if (chosen !== undefined) {
        await vscode.window.showTextDocument(chosen.uri, { selection: chosen.range });
    }
}

/** The page of a rule, which an entry of the quick fix menu leads to where a finding has no repair. */
async function showRule(parts: Parts, rule: string): Promise<void> {
    if (!(await serverRuns(parts))) {
        return;
    }
    const page = await parts.server.call<{ title: string; text: string } | null>('gradguard.server.explain', rule);
    if (page !== null) {
        await parts.pages.showMarkdown(page.title, page.text);
    }
}

/** What the server says of all safe fixes of a document or a notebook. */
interface FixedAll {
    readonly edit: WorkspaceEdit | null;
    readonly fixed: number;
    readonly documents: number;
    readonly left: number;
}

/** All cells of a notebook are one edit, so that one undo takes it back; the server knows those off screen, too. */
async function fixAll(parts: Parts): Promise<void> {
    const notebook = vscode.window.activeNotebookEditor?.notebook;
    const document = notebook === undefined ? (await pythonEditor())?.document : notebook.getCells().find(cell => cell.document.languageId === 'python')?.document;
    if (document === undefined || !(await serverRuns(parts))) {
        return;
    }
    const all = await parts.server.call<FixedAll | null>('gradguard.server.fixAll', parts.server.uri(document.uri));
    if (all?.edit && !(await parts.server.apply(all.edit))) {
        say(parts, vscode.l10n.t('gradguard: the text changed meanwhile; nothing was fixed.'));
        return;
    }
    say(parts, fixedMessage(all));
}

function fixedMessage(all: FixedAll | null): string {
    if (all === null || all.fixed + all.left === 0) {
        return vscode.l10n.t('gradguard: nothing to fix.');
    }
    if (all.fixed === 0) {
        return vscode.l10n.t('gradguard: no safe fix; {0} left.', all.left);
    }
    return all.documents > 1
        ? vscode.l10n.t('gradguard: {0} fixed in {1} cells, {2} left.', all.fixed, all.documents, all.left)
        : vscode.l10n.t('gradguard: {0} fixed, {1} left.', all.fixed, all.left);
}

/** What a command did, where the user looks and in the log. */
function say(parts: Parts, message: string): void {
    parts.log.info(message);
    vscode.window.setStatusBarMessage(message, 10_000);
}

/** Whether the server runs; where it does not, the user is told in words. */
async function serverRuns(parts: Parts): Promise<boolean> {
    if (parts.server.state.running) {
        return true;
    }
    const restart = vscode.l10n.t('Restart');
    void vscode.window.showWarningMessage(vscode.l10n.t('The gradguard server is not running.'), restart).then(async chosen => {
        if (chosen === restart) {
            await parts.server.restart('asked for in the message');
        }
    });
    return false;
}

async function checkWorkspace(parts: Parts): Promise<void> {
    if (!(await serverRuns(parts))) {
        return;
    }
    const result = await vscode.window.withProgress(
        { location: vscode.ProgressLocation.Window, title: vscode.l10n.t('gradguard: checking the workspace') },
        () => parts.server.call<{ files?: number; findings?: number; unread?: number } | null>('gradguard.server.checkWorkspace'),
    );
    if (typeof result?.findings === 'number') {
        const found = vscode.l10n.t('gradguard: {0} findings in {1} files', result.findings, result.files ?? 0);
        const unread = result.unread === undefined ? '' : vscode.l10n.t(', {0} not read (see the log)', result.unread);
        say(parts, found + unread);
    }
    await vscode.commands.executeCommand('workbench.actions.view.problems');
}
