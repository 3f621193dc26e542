// What a person does in the workbench: press keys, point at words, read what is shown.

/** Monaco draws spaces as U+00A0. */
export const plain = text => text.replaceAll('\u00a0', ' ');

/** Waits until `probe` gives something true; the message tells what was last seen. */
export async function until(what, probe, { patience = 120_000, every = 150 } = {}) {
    const end = Date.now() + patience;
    let last;
    for (;;) {
        try {
            last = await probe();
            if (last) {
                return last;
            }
        } catch (error) {
            last = String(error.message ?? error).split('\n')[0];
        }
        if (Date.now() > end) {
            throw new Error(`${what} did not happen (last: ${JSON.stringify(last)?.slice(0, 300)})`);
        }
        await new Promise(resolve => setTimeout(resolve, every));
    }
}

/** An element that is being drawn anew is asked again rather than waited for. */
const SOON = { timeout: 5_000 };

export function hands(page) {
    const editor = page.locator('.editor-instance .monaco-editor').first();
    const lines = editor.locator('.view-lines').first();
    const menu = page.locator('.action-widget:visible');
    const bulb = editor.locator('.lightBulbWidget:visible, [class*="codicon-gutter-lightbulb"]:visible').first();

    /** Text of the lines on the screen, top to bottom: the DOM keeps them in no order. */
    const text = async () =>
        plain(
            await lines.evaluate(element =>
                [...element.querySelectorAll(':scope > .view-line')]
                    .sort((a, b) => parseFloat(a.style.top) - parseFloat(b.style.top))
                    .map(line => line.textContent)
                    .join('\n'),
                undefined,
                SOON,
            ),
        );

    /** Pixel box of a word of the editor, from the text nodes themselves; undefined where it is not on the screen. */
    const box = (word, within = lines) =>
        within.evaluate((element, wanted) => {
            for (const line of element.querySelectorAll('.view-line')) {
                const at = line.textContent.replaceAll('\u00a0', ' ').indexOf(wanted);
                if (at < 0) {
                    continue;
                }
                const walker = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
                const range = document.createRange();
                let passed = 0;
                for (let node; (node = walker.nextNode()); passed += node.data.length) {
                    if (at >= passed && at < passed + node.data.length) {
                        range.setStart(node, at - passed);
                    }
                    if (at + wanted.length > passed && at + wanted.length <= passed + node.data.length) {
                        range.setEnd(node, at + wanted.length - passed);
                    }
                }
                const { x, y, width, height } = range.getBoundingClientRect();
                return { x, y, width, height };
            }
            return undefined;
        }, word, SOON);

    /** Types into the palette; `use` gets the rows and ends by closing it. */
    const inPalette = async (key, typed, use) => {
        const input = page.locator('.quick-input-widget input[type="text"]');
        await until(`the palette by ${key}`, async () => {
            await page.keyboard.press(key);
            await input.waitFor({ state: 'visible', timeout: 6_000 });
            return true;
        });
        await input.fill(typed);
        await use(page.locator('.quick-input-list .monaco-list-row'));
        await page.locator('.quick-input-widget').waitFor({ state: 'hidden' });
    };

    const palette = (key, typed) =>
        inPalette(key, typed, async () => {
            // Enter takes the row in focus, and the list may still be that of the text before.
            await page.locator('.quick-input-list .monaco-list-row.focused', { hasText: typed.replace(/^>/, '') }).waitFor();
            await page.keyboard.press('Enter');
        });

    const command = async title => {
        await palette('F1', `>${title}`);
    };

    const click = async (word, within) => {
        const b = await until(`"${word}" on the screen`, () => box(word, within));
        await page.mouse.click(b.x + b.width / 2, b.y + b.height / 2);
    };

    /** To another place first: a click where the caret stands already asks the server for nothing. */
    const caretOn = async word => {
        await page.keyboard.press('Control+Home');
        await click(word);
    };

    return {
        editor,
        menu,
        text,
        box,
        click,
        caretOn,
        command,
        /** Calls a command that offers a list, and takes the row with a text. */
        commandOn: (title, choice) =>
            inPalette('F1', `>${title}`, async rows => {
                await page.locator('.quick-input-list .monaco-list-row.focused', { hasText: title }).waitFor();
                await page.keyboard.press('Enter');
                await rows.filter({ hasText: choice }).click();
            }),
        /** The commands that the palette lists for a word, as text. */
        commandsOf: async (word, wanted) => {
            let found;
            await inPalette('F1', `>${word}`, async rows => {
                found = await until(`${wanted} commands of ${word}`, async () => {
                    const texts = await rows.allInnerTexts();
                    return texts.length === wanted && texts.map(plain);
                });
                await page.keyboard.press('Escape');
            });
            return found;
        },
        /** Text behind the `{}` of the status bar. */
        status: async () => {
            await page.locator('.statusbar-item[aria-label*="Language Status"], .statusbar-item[id*="status.languageStatus"]').first().click();
            const hover = page.locator('.monaco-hover:visible', { hasText: 'gradguard' });
            await hover.waitFor();
            const text = plain(await hover.innerText());
            await page.keyboard.press('Escape');
            return text;
        },
        open: async name => {
            await palette('Control+p', name);
            await page.locator('.tab.active', { hasText: name.split('/').pop() }).waitFor();
        },
        shows: (wanted, options) => until(`the editor shows ${JSON.stringify(wanted)}`, async () => (await text()).includes(wanted), options),
        hides: (gone, options) => until(`the editor loses ${JSON.stringify(gone)}`, async () => !(await text()).includes(gone), options),
        saved: async () => {
            await page.keyboard.press('Control+s');
            await page.locator('.tab.active.dirty').waitFor({ state: 'detached' });
        },
        /** Severities of the squiggles that lie under a word exactly. */
        squigglesUnder: async word => {
            const wanted = await box(word);
            if (wanted === undefined) {
                return [];
            }
            const found = [];
            for (const kind of ['error', 'warning', 'info', 'hint']) {
                for (const each of await editor.locator(`.squiggly-${kind}`).all()) {
                    const b = await each.boundingBox({ timeout: 1_000 }).catch(() => null);
                    if (b !== null && Math.abs(b.x - wanted.x) < 3 && Math.abs(b.width - wanted.width) < 3 && Math.abs(b.y - wanted.y) < wanted.height) {
                        found.push(kind);
                    }
                }
            }
            return found;
        },
        /** Rests the mouse on a word until its hover shows the text. Gives the hover's text. */
        hover: async (word, wanted) => {
            const hover = page.locator('.monaco-hover:visible', { hasText: wanted });
            await until(`the hover on "${word}" with ${JSON.stringify(wanted)}`, async () => {
                const b = await box(word);
                await page.mouse.move(b.x + 300, b.y + 160);
                await page.mouse.move(b.x + b.width / 2, b.y + b.height / 2, { steps: 6 });
                await hover.first().waitFor({ timeout: 4_000 });
                return true;
            });
            return plain(await hover.first().innerText());
        },
        /** Opens the quick fix menu on a word by keyboard. The bulb's own request may close a menu opened too early. */
        quickFixes: async (word, wanted) => {
            await until(`the quick fix "${wanted}" on "${word}"`, async () => {
                await page.keyboard.press('Escape');
                await caretOn(word);
                await bulb.waitFor({ state: 'visible', timeout: 15_000 });
                await page.keyboard.press('Control+.');
                await menu.getByText(wanted).first().waitFor({ timeout: 4_000 });
                return true;
            });
            return plain(await menu.first().innerText());
        },
        /** Rows of the Problems panel, as text. */
        problems: async () => {
            const panel = page.locator('.markers-panel');
            if (!(await panel.isVisible())) {
                await page.keyboard.press('Control+Shift+M');
                await panel.waitFor();
            }
            return Promise.all((await panel.locator('.monaco-list-row').all()).map(async row => plain(await row.innerText()).replaceAll('\n', ' ')));
        },
        /** Text of the Output panel as far as it is drawn. */
        output: async () => plain(await page.locator('.output-view .view-lines').innerText().catch(() => '')),
        closePanel: async () => {
            const panel = page.locator('.part.panel');
            await until('the panel closed', async () => {
                if (!(await panel.isVisible())) {
                    return true;
                }
                await page.keyboard.press('Control+j');
                await panel.waitFor({ state: 'hidden', timeout: 3_000 });
                return true;
            });
        },
        popups: async () => Promise.all((await page.locator('.notification-toast').all()).map(async each => plain(await each.innerText()))),
        noSelection: () => page.keyboard.press('Escape'),
    };
}
