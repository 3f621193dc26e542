// Drives the scenarios: node tests/vscode/run.mjs [--vsix FILE] [--shots DIR] [NAME ...]
// Prints one line a check and 'N passed, N failed' at the end; exit code 0 only when nothing failed.
// A scenario that fails is run a second time, which decides.
import fs from 'node:fs';
import path from 'node:path';
import { launch, requireEditor } from './workbench.mjs';

const ALL = fs
    .readdirSync(new URL('scenarios/', import.meta.url))
    .filter(name => name.endsWith('.mjs'))
    .map(name => name.slice(0, -4))
    .sort();
const THEMES = { light: 'Default Light Modern', dark: 'Default Dark Modern' };

const argv = process.argv.slice(2);
const option = (name, fallback) => {
    const at = argv.indexOf(name);
    return at < 0 ? fallback : argv.splice(at, 2)[1];
};
const vsix = path.resolve(option('--vsix', ''));
const shotsFolder = path.resolve(option('--shots', 'build/editor/shots'));
const failures = path.resolve('build/editor');
const names = argv.length > 0 ? argv : ALL;

requireEditor();
if (!fs.existsSync(vsix) || !fs.statSync(vsix).isFile()) {
    console.error('give the .vsix by --vsix FILE (npm run package builds it)');
    process.exit(1);
}
for (const name of names) {
    if (!ALL.includes(name)) {
        console.error(`there is no scenario ${name}: ${ALL.join(', ')}`);
        process.exit(1);
    }
}
fs.mkdirSync(shotsFolder, { recursive: true });
fs.mkdirSync(failures, { recursive: true });

const started = Date.now();
let passed = 0;
let failed = 0;
let repeated = 0;
const say = text => console.log(`${((Date.now() - started) / 1000).toFixed(1).padStart(6)} s  ${text}`);

let wb; // the workbench that is open
for (const signal of ['SIGINT', 'SIGTERM']) {
    process.once(signal, async () => {
        await wb?.close();
        console.error(`ended by ${signal}`);
        process.exit(1);
    });
}

/** Ends an attempt at its first failure: what follows in a scenario stands on what came before. */
class Stop extends Error {}

/**
 * Runs a scenario in a workbench of its own and gives the number of its failures.
 * Where `last` is not said, the first failure ends it.
 */
async function attempt(name, last) {
    wb = undefined;
    let wrong = 0;
    const fail = async (what, error) => {
        wrong += 1;
        say(`${last ? 'FAIL' : 'fail'} ${what}: ${String(error?.message ?? error).split('\n').slice(0, 12).join('\n          ')}`);
        await wb?.page.screenshot({ path: path.join(failures, `${name}-failure-${wrong}.png`) }).catch(() => {});
        await wb?.page.keyboard.press('Escape').catch(() => {});
    };
    let right = 0;
    const check = async (what, body) => {
        try {
            await body();
            right += 1;
            say(`ok   ${what}`);
        } catch (error) {
            await fail(what, error);
            if (!last) {
                throw new Stop();
            }
        }
    };
    // The theme is changed through the settings file, so that a hover or menu stays open.
    const shots = async shot => {
        for (const [kind, theme] of Object.entries(THEMES)) {
            wb.change({ 'workbench.colorTheme': theme });
            await wb.page.locator(`.monaco-workbench.${kind === 'dark' ? 'vs-dark' : 'vs'}`).waitFor();
            await wb.page.waitForTimeout(600);
            await wb.page.screenshot({ path: path.join(shotsFolder, `${shot}-${kind}.png`) });
        }
        wb.change({ 'workbench.colorTheme': THEMES.light });
        await wb.page.locator('.monaco-workbench.vs').waitFor();
    };
    try {
        const scenario = await import(`./scenarios/${name}.mjs`);
        const { vsix: more = [], ...options } = typeof scenario.options === 'function' ? await scenario.options() : scenario.options;
        wb = await launch({ vsix: [vsix, ...more], log: path.join(failures, `${name}.log`), ...options });
        await scenario.run({ wb, check, shots });
    } catch (error) {
        if (!(error instanceof Stop)) {
            await fail(name, error.stack ?? error);
        }
    } finally {
        await wb?.close();
        wb = undefined;
    }
    return { right, wrong };
}

// A real editor on a crowded machine loses a key or a click now and then: a scenario that fails is run once more
// from the start, and only what fails then counts. The failures of both attempts are printed.
for (const name of names) {
    say(`-- ${name}`);
    let result = await attempt(name, false);
    if (result.wrong > 0) {
        repeated += 1;
        say(`-- ${name}, from the start once more`);
        result = await attempt(name, true);
    }
    passed += result.right;
    failed += result.wrong;
}
say('done');
console.log(`${passed} passed, ${failed} failed${repeated > 0 ? `; scenarios run twice: ${repeated}` : ''}`);
process.exit(failed === 0 && passed > 0 ? 0 : 1);
