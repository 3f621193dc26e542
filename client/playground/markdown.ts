// Draws what the server writes in Markdown. Everything becomes text of an element: no markup of others can come in.

const INLINE = /\*\*(.+?)\*\*|`([^`]+)`|\[([^\]]+)\]\((https?:[^)\s]+)\)|\*(.+?)\*/g;

export function draw(text: string): HTMLElement {
    const out = document.createElement('div');
    let list: HTMLElement | undefined;
    let code: HTMLElement | undefined;
    let paragraph: HTMLElement | undefined;
    for (const line of text.split('\n')) {
        if (line.startsWith('```')) {
            code = code === undefined ? add(add(out, 'pre'), 'code') : undefined;
            list = paragraph = undefined;
        } else if (code !== undefined) {
            code.append(`${line}\n`);
        } else if (line.startsWith('- ')) {
            list ??= add(out, 'ul');
            paragraph = undefined;
            inline(add(list, 'li'), line.slice(2));
        } else if (line === '---') {
            add(out, 'hr');
            list = paragraph = undefined;
        } else if (line.trim() === '') {
            list = paragraph = undefined;
        } else if (/^#+ /.test(line)) {
            inline(add(add(out, 'p'), 'strong'), line.replace(/^#+ /, ''));
        } else {
            list = undefined;
            if (paragraph === undefined) {
                paragraph = add(out, 'p');
            } else {
                paragraph.append(' ');
            }
            inline(paragraph, line);
        }
    }
    return out;
}

export function inline(into: HTMLElement, text: string): void {
    let at = 0;
    for (const found of text.matchAll(INLINE)) {
        into.append(text.slice(at, found.index));
        at = found.index + found[0].length;
        const [, strong, code, label, address, emphasis] = found;
        if (code !== undefined) {
            add(into, 'code').textContent = code;
        } else if (label !== undefined && address !== undefined) {
            const link = add(into, 'a') as HTMLAnchorElement;
            link.href = address;
            link.target = '_blank';
            link.rel = 'noreferrer';
            inline(link, label);
        } else {
            inline(add(into, strong !== undefined ? 'strong' : 'em'), strong ?? emphasis ?? '');
        }
    }
    into.append(text.slice(at));
}

function add(into: HTMLElement, name: string): HTMLElement {
    return into.appendChild(document.createElement(name));
}
