// How long the playground takes in a browser: node benchmarks/browser.mjs SITE PROGRAM ...
// Prints JSON: seconds from opening the page to its text, and to the first squiggle, with an empty and a full cache;
// milliseconds from a key to what is found in the text it makes; bytes that come over the network.
import fs from 'node:fs';
import path from 'node:path';
import { open } from '../tests/docs/browser.mjs';

const [site, ...programs] = process.argv.slice(2);
const KEYS = 100;
const PATIENCE = { timeout: 300_000 };
const { base, browser, close } = await open(path.resolve(site));
const context = await browser.newContext();
const figures = {};
for (const cache of ['cold', 'warm']) {
    const page = await context.newPage();
    await page.addInitScript(() => navigator.serviceWorker.addEventListener('message', () => (document.documentElement.dataset.kept = 'yes')));
    const began = Date.now();
    await page.goto(`${base}playground.html`, { waitUntil: 'commit' });
    await page.locator('.cm-lintRange-error').first().waitFor({ state: 'attached', ...PATIENCE });
    figures[cache] = (Date.now() - began) / 1000;
    figures[`${cache}_paint`] = (await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0].startTime)) / 1000;
    if (cache === 'cold') {
        await page.waitForFunction(() => document.documentElement.dataset.kept === 'yes', undefined, PATIENCE);
        await page.close();
    } else {
        figures.typed = [];
        for (const program of programs) {
            const text = fs.readFileSync(program, 'utf8');
            figures.typed.push({ program: path.basename(program), lines: text.split('\n').length - 1, times: await typing(page, text) });
        }
    }
}
figures.machine = `Chromium ${browser.version()}`;
await context.close();
const log = console.log;
console.log = () => undefined;
await close();
log(JSON.stringify(figures));
process.exit(0);

async function typing(page, text) {
    await page.locator('.cm-content').click();
    await page.keyboard.press('Control+a');
    await page.keyboard.insertText(text);
    await settled(page);
    await page.evaluate(() => {
        const root = document.getElementById('gg-root');
        globalThis.times = [];
        globalThis.pressed = 0;
        document.querySelector('.cm-content').addEventListener('beforeinput', () => (globalThis.pressed = performance.now()), true);
        globalThis.watching?.disconnect();
        // What answers no letter, as the line break before a statement, is not counted.
        globalThis.watching = new MutationObserver(() => {
            if (globalThis.pressed > 0) {
                globalThis.times.push(performance.now() - globalThis.pressed);
            }
            globalThis.pressed = 0;
        });
        globalThis.watching.observe(root, { attributeFilter: ['data-version'] });
    });
    // A statement is written at several places, key by key: most texts on the way are no valid program.
    const STATEMENT = 'extra = (1 + 2) * 3 - 456';
    for (let n = 0; n < KEYS; n += 1) {
        const letter = STATEMENT[n % STATEMENT.length];
        if (n % STATEMENT.length === 0) {
            await page.keyboard.press('Control+Home');
            for (let line = 0; line < 40 + 2 * n; line += 1) {
                await page.keyboard.press('ArrowDown');
            }
            await page.keyboard.press('End');
            await page.keyboard.press('Enter');
            await settled(page);
        }
        const before = await page.evaluate(() => globalThis.times.length);
        await page.keyboard.type(letter);
        await page.waitForFunction(count => globalThis.times.length > count, before, PATIENCE);
    }
    return page.evaluate(() => globalThis.times);
}

async function settled(page) {
    let last;
    for (;;) {
        const now = await page.locator('#gg-root').getAttribute('data-version');
        if (now === last && now !== null) {
            return;
        }
        last = now;
        await page.waitForTimeout(3_000);
    }
}
