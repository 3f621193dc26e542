// The editor's web extension host: no Python of the machine, the server runs in a worker of the browser.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { until } from '../hands.mjs';
import { stub } from '../stub.mjs';

const TEXT = 'import torch\n\nw = torch.randn(3, requires_grad=True)\ny = w.exp()\ny.mul_(2)\ny.sum().backward()\n';
const LOOP = `import torch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = torch.nn.Linear(3, 1).to(device)
for batch in range(9):
    loss = model(torch.rand(2, 3, device=device)).sum()
    loss.backward()
    print(loss.item())
`;

/** A file system in memory, in the browser as well. */
const FILES = `const vscode = require('vscode');
const text = new TextEncoder().encode(${JSON.stringify(TEXT)});
const changed = new vscode.EventEmitter();
const isFile = uri => uri.path === '/study/model.py';
const isFolder = uri => ['/', '/study'].includes(uri.path);
const missing = uri => { throw vscode.FileSystemError.FileNotFound(uri); };
const refused = () => { throw vscode.FileSystemError.NoPermissions(); };
exports.activate = context => context.subscriptions.push(
    vscode.workspace.registerFileSystemProvider('vscode-vfs', {
        onDidChangeFile: changed.event,
        watch: () => new vscode.Disposable(() => undefined),
        stat: uri => isFile(uri) ? { type: 1, ctime: 1, mtime: 1, size: text.length } : isFolder(uri) ? { type: 2, ctime: 1, mtime: 1, size: 0 } : missing(uri),
        readDirectory: uri => uri.path === '/study' ? [['model.py', 1]] : uri.path === '/' ? [['study', 2]] : missing(uri),
        readFile: uri => isFile(uri) ? text : missing(uri),
        writeFile: refused, createDirectory: refused, delete: refused, rename: refused,
    }),
);
`;

const workspace = settings => JSON.stringify({ folders: [{ uri: 'vscode-vfs://stub/study' }, { path: 'disk' }], settings });

export const options = () => ({
    vsix: [stub({ publisher: 'stub', name: 'files', activationEvents: ['onFileSystem:vscode-vfs', 'onStartupFinished'] }, FILES)],
    open: 'web.code-workspace',
    settings: { 'remote.extensionKind': { 'gradguard.gradguard': ['web'] } },
    files: {
        'web.code-workspace': workspace({}),
        'disk/loop.py': LOOP,
    },
});

export async function run({ wb, check }) {
    const { page } = wb;
    const elsewhere = [];
    page.context().on('request', request => {
        const { hostname, protocol } = new URL(request.url());
        if (protocol.startsWith('http') && hostname !== '127.0.0.1') {
            elsewhere.push(request.url());
        }
    });

    await check('a virtual file is checked, by Python in the browser', async () => {
        await page.locator('.explorer-folders-view .monaco-list-row', { hasText: 'model.py' }).dblclick();
        await page.locator('.tab.active', { hasText: 'model.py' }).waitFor();
        await until('a squiggle', async () => (await wb.squigglesUnder('y.mul_(2)')).length > 0);
        assert.match(await wb.status(), /in the browser/);
        assert.deepEqual(await wb.popups(), []);
    });

    await check('the hover and a quick fix', async () => {
        assert.match(await wb.hover('mul_', 'GG101'), /exp/);
        await wb.noSelection();
        await wb.quickFixes('y.mul_', 'Write `y` out of place');
        await page.keyboard.press('Enter');
        await wb.shows('y = y.mul(2)');
        await until('no squiggle', async () => (await wb.squigglesUnder('y = y.mul(2)')).length === 0);
    });

    await check('the commands, but not the one that runs a program', async () => {
        const titles = await wb.commandsOf('gradguard:', 6);
        assert.ok(!titles.some(title => title.includes('Monitor')), titles.join());
        await page.keyboard.press('Control+z');
        await wb.shows('y.mul_(2)');
        await wb.command('gradguard: Fix All in File');
        await wb.shows('y = y.mul(2)');
    });

    await check('a file of the machine', async () => {
        await wb.open('loop.py');
        await until('a squiggle', async () => (await wb.squigglesUnder('loss.item()')).length > 0);
    });

    await check('the settings', async () => {
        fs.writeFileSync(path.join(wb.work, 'web.code-workspace'), workspace({ 'gradguard.ignore': ['GG301'] }));
        await until('no squiggle', async () => (await wb.squigglesUnder('loss.item()')).length === 0);
    });

    await check('no request leaves the origin', async () => {
        assert.deepEqual(elsewhere, []);
    });
}
