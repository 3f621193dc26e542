// No Python that serves, and then the one of the Python extension.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { until } from '../hands.mjs';
import { stub } from '../stub.mjs';

const TEXT = 'import torch\n\nw = torch.randn(3, requires_grad=True)\ny = w.exp()\ny.mul_(2)\ny.sum().backward()\n';

/** Stands in for the Python extension: tells the environment that `chosen.txt` of the folder names. */
const PYTHON_EXTENSION = `const vscode = require('vscode');
const fs = require('fs');
exports.activate = () => {
    const changed = new vscode.EventEmitter();
    const file = vscode.Uri.joinPath(vscode.workspace.workspaceFolders[0].uri, 'chosen.txt').fsPath;
    fs.watchFile(file, { interval: 200 }, () => changed.fire({}));
    const path = () => (fs.existsSync(file) ? fs.readFileSync(file, 'utf8').trim() : '');
    return { environments: {
        getActiveEnvironmentPath: () => ({ path: path() }),
        resolveEnvironment: async env => (env.path === '' ? undefined : { executable: { uri: vscode.Uri.file(env.path) } }),
        onDidChangeActiveEnvironmentPath: changed.event,
    } };
};
`;

export const options = () => ({
    vsix: [stub({ publisher: 'ms-python', name: 'python', activationEvents: ['onLanguage:python'] }, PYTHON_EXTENSION)],
    env: { PATH: '/nonexistent', VSCODE_CLI: '1' }, // the second: the login shell's PATH is not taken instead
    files: {
        'model.py': TEXT,
        // An environment with another torch: only its version is looked up.
        'env/torch-2.6.0.dist-info/METADATA': 'Metadata-Version: 2.1\nName: torch\nVersion: 2.6.0\n',
        'old/python': `#!/bin/sh\necho 'gradguard-facts:{"version": [3, 9, 1], "executable": "/old/python"}'\n`,
        'env/python': `#!/bin/sh\nexport PYTHONPATH="\${0%/*}"\nexec ${fs.realpathSync('/usr/bin/python3')} "$@"\n`,
    },
});

export async function run({ wb, check }) {
    const { page } = wb;
    for (const name of ['old/python', 'env/python']) {
        fs.chmodSync(path.join(wb.work, name), 0o755);
    }
    fs.writeFileSync(path.join(wb.work, 'chosen.txt'), path.join(wb.work, 'old/python'));
    const toast = page.locator('.notification-toast', { hasText: 'gradguard needs Python 3.10 or newer' });

    await check('with a Python that is too old and no other, one message says what is needed, with an action', async () => {
        await wb.open('model.py');
        await toast.waitFor();
        assert.equal((await wb.popups()).length, 1);
        await toast.getByRole('button', { name: 'Choose Python' }).click();
        const settings = page.locator('.settings-editor', { hasText: 'Interpreter' });
        await settings.waitFor();
        await until('the settings closed', async () => {
            await page.keyboard.press('Escape');
            return !(await settings.isVisible());
        });
    });

    await check('a further try says it in the log only', async () => {
        await wb.command('gradguard: Restart Server');
        await until('the second message in the log', () => wb.logText().split('found none').length > 2);
        assert.equal((await wb.popups()).filter(text => text.includes('gradguard')).length, 0);
        const log = wb.logText();
        assert.match(log, /setting: none/);
        assert.match(log, /python extension: .*old\/python: Python 3\.9\.1 is older than 3\.10/);
        assert.match(log, /PATH: python3: not found/);
    });

    await check('the environment chosen in the Python extension is used as soon as there is one', async () => {
        fs.writeFileSync(path.join(wb.work, 'chosen.txt'), path.join(wb.work, 'env/python'));
        await wb.open('model.py');
        await until('a squiggle', async () => (await wb.squigglesUnder('y.mul_(2)')).length > 0);
        assert.match(wb.logText(), /python extension: .*env\/python: Python 3\.\d+\.\d+ .*used/);
    });

    await check('the torch of that environment is the one assumed', async () => {
        await wb.command('gradguard: Show Debug Information');
        await wb.shows('torchVersion = 2.6');
    });
}
