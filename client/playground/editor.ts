// CodeMirror with what the server finds drawn into it.
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { python } from '@codemirror/lang-python';
import { bracketMatching, indentOnInput, indentUnit, syntaxHighlighting } from '@codemirror/language';
import { lintGutter, lintKeymap, linter, setDiagnostics } from '@codemirror/lint';
import type { Diagnostic as Mark } from '@codemirror/lint';
import { EditorState } from '@codemirror/state';
import type { Text } from '@codemirror/state';
import { drawSelection, EditorView, highlightActiveLine, hoverTooltip, keymap, lineNumbers } from '@codemirror/view';
import { classHighlighter } from '@lezer/highlight';
import type { Diagnostic, Position, Range, TextEdit } from 'vscode-languageserver-protocol';
import { draw } from './markdown';

const SEVERITIES = ['error', 'error', 'warning', 'info', 'hint'] as const;

export interface Asked {
    /** Markdown about a place, and what it is about. */
    readonly hover: (position: Position) => Promise<{ text: string; range: Range | undefined } | undefined>;
    readonly edited: (text: string) => void;
    readonly moved: () => void;
    readonly fixes: () => void;
}

export function editor(parent: HTMLElement, text: string, label: string, asked: Asked): EditorView {
    return new EditorView({
        parent,
        doc: text,
        extensions: [
            lineNumbers(),
            history(),
            drawSelection(),
            indentOnInput(),
            indentUnit.of('    '),
            bracketMatching(),
            highlightActiveLine(),
            python(),
            syntaxHighlighting(classHighlighter),
            // Its own tooltips are left away: the server's hover tells the same and more.
            linter(null, { tooltipFilter: () => [] }),
            lintGutter(),
            hoverTooltip(async (view, at) => {
                const found = await asked.hover(positionOf(view.state.doc, at)).catch(() => undefined);
                if (found === undefined) {
                    return null;
                }
                const { from, to } = found.range === undefined ? { from: at, to: at } : placeOf(view.state.doc, found.range);
                const dom = draw(found.text);
                dom.className = 'gg-hover';
                return { pos: Math.min(from, at), end: Math.max(to, at), create: () => ({ dom }) };
            }),
            keymap.of([
                {
                    key: 'Mod-.',
                    run: () => {
                        asked.fixes();
                        return true;
                    },
                },
                // Tab is not taken, so that the keyboard leads out of the editor as well.
                ...defaultKeymap,
                ...historyKeymap,
                ...lintKeymap,
            ]),
            EditorView.contentAttributes.of({ 'aria-label': label, spellcheck: 'false' }),
            EditorState.phrases.of({}),
            EditorView.updateListener.of(update => {
                if (update.docChanged) {
                    asked.edited(update.state.doc.toString());
                }
                if (update.docChanged || update.selectionSet) {
                    asked.moved();
                }
            }),
        ],
    });
}

export function mark(view: EditorView, found: readonly Diagnostic[]): void {
    const marks = found.map((each): Mark => ({ ...placeOf(view.state.doc, each.range), severity: SEVERITIES[each.severity ?? 1] ?? 'error', message: each.message }));
    view.dispatch(setDiagnostics(view.state, marks));
}

export function select(view: EditorView, range: Range): void {
    const { from, to } = placeOf(view.state.doc, range);
    view.dispatch({ selection: { anchor: from, head: to }, effects: EditorView.scrollIntoView(from, { y: 'center' }) });
    view.focus();
}

export function apply(view: EditorView, edits: readonly TextEdit[]): void {
    view.dispatch({ changes: edits.map(each => ({ ...placeOf(view.state.doc, each.range), insert: each.newText })) });
}

export function replace(view: EditorView, text: string): void {
    if (text !== view.state.doc.toString()) {
        view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text }, selection: { anchor: 0 } });
    }
}

/** Columns count as in the protocol: both have UTF-16. */
export function positionOf(doc: Text, at: number): Position {
    const line = doc.lineAt(at);
    return { line: line.number - 1, character: at - line.from };
}

function placeOf(doc: Text, range: Range): { from: number; to: number } {
    const at = ({ line, character }: Position): number => {
        const found = doc.line(Math.min(line + 1, doc.lines));
        return Math.min(found.from + character, found.to);
    };
    return { from: at(range.start), to: at(range.end) };
}
