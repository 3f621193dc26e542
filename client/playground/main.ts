// The page where a program is typed and read as in an editor. Nothing of it leaves the browser.
import type { CodeAction, Diagnostic, Range } from 'vscode-languageserver-protocol';
import { read, Shown, written } from './address';
import { apply, editor, mark, positionOf, replace, select } from './editor';
import { draw, inline } from './markdown';
import { Server } from './server';
import { filled, texts } from './texts';

interface Data {
    readonly version: string;
    readonly lock: string;
    readonly torch: readonly string[];
    readonly examples: readonly { readonly id: string; readonly title: string; readonly code: string }[];
    readonly rules: readonly { readonly code: string; readonly name: string; readonly page: string; readonly on: boolean }[];
}

const ADDRESS_MS = 400;
const CURSOR_MS = 250;
const SEVERITIES = ['error', 'error', 'warning', 'information', 'hint'] as const;

const find = <T extends HTMLElement>(id: string): T => document.getElementById(`gg-${id}`) as T;

async function main(): Promise<void> {
    const root = find('root');
    const { home = '', site = '', language = 'en' } = root.dataset;
    const say = texts(language);
    const status = find('status');
    if (location.protocol === 'file:') {
        status.textContent = say.file;
        return;
    }
    const address = (name: string): string => new URL(home + name, location.href).href;
    const data = (await (await fetch(address(`data-${language}.json`))).json()) as Data;

    const examples = find<HTMLSelectElement>('examples');
    for (const { id, title } of data.examples) {
        examples.add(new Option(title, id));
    }
    examples.add(new Option(say.own, ''));
    const torch = find<HTMLSelectElement>('torch');
    for (const version of data.torch) {
        torch.add(new Option(version, version));
    }
    const boxes = new Map(
        data.rules.map(rule => {
            const label = document.createElement('label');
            const box = label.appendChild(document.createElement('input'));
            box.type = 'checkbox';
            label.append(` ${rule.code} ${rule.name}`);
            find('rules').append(label);
            box.addEventListener('change', () => settingsChanged());
            return [rule.code, box] as const;
        }),
    );

    const chosen = (): Pick<Shown, 'torch' | 'off' | 'on'> => ({
        torch: torch.value,
        off: data.rules.filter(rule => rule.on && boxes.get(rule.code)?.checked !== true).map(rule => rule.code),
        on: data.rules.filter(rule => !rule.on && boxes.get(rule.code)?.checked === true).map(rule => rule.code),
    });
    const settings = (): object => {
        const { off, on } = chosen();
        return { torchVersion: torch.value, ignore: off, rules: Object.fromEntries(on.map(code => [code, 'information'])) };
    };
    const show = async (): Promise<string> => {
        let shown: Shown = { torch: 'auto', off: [], on: [] };
        try {
            shown = await read(location.hash);
            find('note').hidden = true;
        } catch {
            find('note').textContent = say.broken;
            find('note').hidden = false;
        }
        torch.value = data.torch.includes(shown.torch) ? shown.torch : 'auto';
        for (const rule of data.rules) {
            (boxes.get(rule.code) as HTMLInputElement).checked = rule.on ? !shown.off.includes(rule.code) : shown.on.includes(rule.code);
        }
        const named = data.examples.find(each => (shown.code === undefined ? each.id === shown.example : each.code === shown.code));
        const example = named ?? (shown.code === undefined ? data.examples[0] : undefined);
        examples.value = example?.id ?? '';
        return shown.code ?? example?.code ?? '';
    };

    const first = await show();
    let running: Server | undefined;
    let fixes = false;
    let found: readonly Diagnostic[] = [];
    let addressed = location.hash;
    let addressing: ReturnType<typeof setTimeout> | undefined;
    let looking: ReturnType<typeof setTimeout> | undefined;
    let ready = false;

    const place = find('editor');
    place.replaceChildren();
    const view = editor(place, first, say.editor, {
        hover: async position => {
            const hover = ready ? await running?.hover(position) : undefined;
            return hover && typeof hover.contents === 'object' && 'value' in hover.contents ? { text: hover.contents.value, range: hover.range } : undefined;
        },
        edited: text => {
            if (ready) {
                running?.change(text);
            }
            find('offers').hidden = true;
            addressSoon();
        },
        moved: () => {
            clearTimeout(looking);
            looking = setTimeout(() => void aboutCursor(), CURSOR_MS);
        },
        fixes: () => {
            const at = positionOf(view.state.doc, view.state.selection.main.head);
            void offers({ start: at, end: at });
        },
    });

    function addressSoon(): void {
        clearTimeout(addressing);
        addressing = setTimeout(async () => {
            const code = view.state.doc.toString();
            const example = data.examples.find(each => each.code === code);
            examples.value = example?.id ?? '';
            addressed = await written(code, chosen());
            history.replaceState(null, '', addressed);
        }, ADDRESS_MS);
    }
    function settingsChanged(): void {
        if (ready) {
            running?.configure(settings());
        }
        addressSoon();
    }
    torch.addEventListener('change', settingsChanged);
    examples.addEventListener('change', () => {
        const example = data.examples.find(each => each.id === examples.value);
        if (example !== undefined) {
            replace(view, example.code);
        }
    });
    window.addEventListener('hashchange', async () => {
        if (location.hash !== addressed) {
            replace(view, await show());
            settingsChanged();
        }
    });

    async function aboutCursor(): Promise<void> {
        if (!ready) {
            return;
        }
        const hover = await running?.hover(positionOf(view.state.doc, view.state.selection.main.head)).catch(() => undefined);
        const contents = hover?.contents;
        find('cursor').replaceChildren(...(contents !== undefined && typeof contents === 'object' && 'value' in contents ? [draw(contents.value)] : []));
    }

    async function offers(range: Range): Promise<void> {
        const section = find('offers');
        const list = find('offers-list');
        find('offers-title').textContent = filled(say.fixesOf, range.start.line + 1);
        const offered = (ready ? await running?.actions(range).catch(() => null) : null) ?? [];
        // What an editor does by a command of its own has no edit here.
        const usable = offered.filter(each => each.command === undefined);
        list.replaceChildren(
            ...usable.map(action => {
                const item = document.createElement('li');
                const button = item.appendChild(document.createElement('button'));
                button.type = 'button';
                button.className = 'md-button';
                inline(button, action.title);
                button.disabled = action.disabled !== undefined;
                button.title = action.disabled?.reason ?? '';
                button.addEventListener('click', () => void make(action, item));
                return item;
            }),
        );
        find('offers-note').textContent = !fixes ? say.needLibcst : usable.length === 0 ? say.noFixes : '';
        section.hidden = false;
        (list.querySelector<HTMLElement>('button:enabled') ?? find('offers-title')).focus();
    }
    async function make(action: CodeAction, item: HTMLElement): Promise<void> {
        const edit = await running?.edit(action).catch(() => undefined);
        const edits = edit?.documentChanges?.flatMap(change => ('edits' in change ? change.edits : [])) ?? [];
        if (edits.length === 0) {
            item.append(` ${fixes ? say.notWritten : say.needLibcst}`);
            return;
        }
        apply(view, edits as Parameters<typeof apply>[1]);
        view.focus();
    }
    find('offers').addEventListener('keydown', event => {
        if (event.key === 'Escape') {
            find('offers').hidden = true;
            view.focus();
        }
    });

    function list(): void {
        find('findings').replaceChildren(...found.map(finding));
        status.textContent = found.length === 0 ? say.noFindings : filled(say.findings, found.length);
    }
    function finding(each: Diagnostic): HTMLElement {
        const item = document.createElement('li');
        const severity = SEVERITIES[each.severity ?? 1] ?? 'error';
        item.className = `gg-${severity}`;
        const code = String(each.code ?? '');
        const rule = data.rules.find(other => other.code === code);
        const link = document.createElement('a');
        link.href = site + (rule?.page ?? '');
        link.textContent = `${code} ${rule?.name ?? ''}`.trim();
        const where = (range: Range, text: string): HTMLElement => {
            const button = document.createElement('button');
            button.type = 'button';
            button.className = 'gg-place';
            inline(button, text);
            button.addEventListener('click', () => select(view, range));
            return button;
        };
        item.append(where(each.range, `${filled(say.line, each.range.start.line + 1)}, ${say[severity]}: ${each.message}`), ' ', link, ' ');
        const fix = document.createElement('button');
        fix.type = 'button';
        fix.className = 'gg-fix';
        fix.textContent = say.fixes;
        fix.setAttribute('aria-label', filled(say.fixesOf, each.range.start.line + 1));
        fix.addEventListener('click', () => void offers(each.range));
        item.append(fix);
        const places = document.createElement('ul');
        for (const related of each.relatedInformation ?? []) {
            const { range } = related.location;
            places.appendChild(document.createElement('li')).append(where(range, `${filled(say.line, range.start.line + 1)}: ${related.message}`));
        }
        if (places.childElementCount > 0) {
            item.append(places);
        }
        return item;
    }

    async function copied(text: string): Promise<void> {
        try {
            await navigator.clipboard.writeText(text);
            status.textContent = say.copied;
        } catch {
            status.textContent = say.notCopied;
        }
    }
    find('link').addEventListener('click', async () => {
        addressed = await written(view.state.doc.toString(), chosen());
        history.replaceState(null, '', addressed);
        await copied(location.href);
    });
    find('issue').addEventListener('click', () => {
        const { off, on } = chosen();
        const code = view.state.doc.toString();
        const fence = '`'.repeat(Math.max(3, ...[...code.matchAll(/`+/g)].map(match => match[0].length + 1)));
        const lines = found.map(each => `- ${each.range.start.line + 1}:${each.range.start.character + 1} ${String(each.code)} ${each.message}`);
        void copied(
            [
                `gradguard ${data.version}, torch ${torch.value}${off.length > 0 ? `, off: ${off.join(', ')}` : ''}${on.length > 0 ? `, on: ${on.join(', ')}` : ''}`,
                navigator.userAgent,
                '',
                `${fence}python`,
                code.replace(/\n$/, ''),
                fence,
                '',
                ...(lines.length > 0 ? lines : [say.noFindings]),
                '',
            ].join('\n'),
        );
    });

    status.textContent = say.loading;
    running = new Server(
        address('worker.js'),
        {
            wasm: address('python.wasm'),
            library: address('python.zip'),
            server: address('gradguard.zip'),
            fixes: address('fixes.zip'),
            lock: data.lock,
            logLevel: 'error',
        },
        language,
        {
            ready: async there => {
                fixes = there;
                find('libcst').hidden = there;
                status.textContent = say.ready;
                await running?.open(view.state.doc.toString(), settings());
                ready = true;
                void keep();
            },
            diagnostics: (diagnostics, version) => {
                if (version === running?.current) {
                    found = [...diagnostics].sort((a, b) => a.range.start.line - b.range.start.line);
                    mark(view, found);
                    list();
                    root.dataset.version = String(version);
                    void aboutCursor();
                }
            },
            failed: why => {
                status.textContent = filled(say.failed, why);
            },
        },
    );

    /** For the next visit, with or without a network. */
    async function keep(): Promise<void> {
        if (!('serviceWorker' in navigator)) {
            return;
        }
        try {
            await navigator.serviceWorker.register(new URL(`${site}sw.js`, location.href));
            const { active } = await navigator.serviceWorker.ready;
            const used = performance.getEntriesByType('resource').map(entry => entry.name);
            const parts = ['worker.js', 'python.wasm', 'python.zip', 'gradguard.zip', 'fixes.zip', `data-${language}.json`].map(address);
            active?.postMessage([location.href.replace(/#.*/, ''), ...used, ...parts]);
        } catch (error) {
            console.warn('not kept for use without a network', error);
        }
    }
}

void main();
