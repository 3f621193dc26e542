// A folder that is on no disk, as when a repository is opened without cloning it.
import assert from 'node:assert/strict';
import { until } from '../hands.mjs';
import { stub } from '../stub.mjs';

const TEXT = 'import torch\n\nw = torch.randn(3, requires_grad=True)\ny = w.exp()\ny.mul_(2)\ny.sum().backward()\n';

/** A file system in memory with one file. */
const FILES = `const vscode = require('vscode');
const text = Buffer.from(${JSON.stringify(TEXT)});
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

export const options = () => ({
    vsix: [stub({ publisher: 'stub', name: 'files', activationEvents: ['onFileSystem:vscode-vfs', 'onStartupFinished'] }, FILES)],
    open: 'virtual.code-workspace',
    files: { 'virtual.code-workspace': JSON.stringify({ folders: [{ uri: 'vscode-vfs://stub/study' }] }) },
});

export async function run({ wb, check }) {
    const { page } = wb;

    await check('its file is checked when it is opened', async () => {
        await page.locator('.explorer-folders-view .monaco-list-row', { hasText: 'model.py' }).dblclick();
        await page.locator('.tab.active', { hasText: 'model.py' }).waitFor();
        await until('a squiggle', async () => (await wb.squigglesUnder('y.mul_(2)')).length > 0);
        assert.deepEqual(await wb.popups(), []);
    });

    await check('a hover and a quick fix work there as well', async () => {
        assert.match(await wb.hover('mul_', 'GG101'), /exp/);
        await wb.noSelection();
        await wb.quickFixes('y.mul_', 'Write `y` out of place');
        await page.keyboard.press('Enter');
        await wb.shows('y = y.mul(2)');
    });
}
