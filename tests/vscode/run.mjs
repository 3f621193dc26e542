// Drives the scenarios: node tests/vscode/run.mjs [--vsix FILE] [--shots DIR] [NAME ...]
// Prints one line a check and 'N passed, N failed' at the end; exit code 0 only when nothing failed.
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
const say = text => console.log(`${((Date.now() - started) / 1000).toFixed(1).padStart(6)} s  ${text}`);

let wb; // the workbench that is open
for (const signal of ['SIGINT', 'SIGTERM']) {
    process.once(signal, async () => {
        await wb?.close();
        console.error(`ended by ${signal}`);
        process.exit(1);
    });
}

for (const name of names) {
    say(`-- ${name}`);
    wb = undefined;
    const fail = async (what, error) => {
        failed += 1;
        say(`FAIL ${what}: ${String(error?.message ?? error).split('\n').slice(0, 6).join('\n          ')}`);
        await wb?.page.screenshot({ path: path.join(failures, `${name}-failure-${failed}.png`) }).catch(() => {});
        await wb?.page.keyboard.press('Escape').catch(() => {});
    };
    const check = async (what, body) => {
        try {
            await body();
            passed += 1;
            say(`ok   ${what}`);
        } catch (error) {
            await fail(what, error);
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
        await fail(name, error.stack ?? error);
    } finally {
        await wb?.close();
        wb = undefined;
    }
}
say('done');
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 && passed > 0 ? 0 : 1);
