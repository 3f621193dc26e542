// A folder that is not trusted: its files are read, nothing that it names is run.
import assert from 'node:assert/strict';
import { chmodSync, existsSync } from 'node:fs';
import path from 'node:path';
import { until } from '../hands.mjs';

const TEXT = 'import torch\n\nw = torch.randn(3, requires_grad=True)\ny = w.exp()\ny.mul_(2)\ny.sum().backward()\n';

export const options = {
    trust: true,
    files: {
        'model.py': TEXT,
        'python.sh': '#!/bin/sh\ntouch "$(dirname "$0")/was-run"\nexec python3 "$@"\n',
        '.vscode/settings.json': JSON.stringify({ 'gradguard.interpreter': ['${workspaceFolder}/python.sh'] }),
    },
};

export async function run({ wb, check }) {
    const { page } = wb;
    const mark = path.join(wb.work, 'was-run');
    chmodSync(path.join(wb.work, 'python.sh'), 0o755);

    await check('in restricted mode the file is checked, and nothing of the folder is run', async () => {
        await page.locator('.statusbar-item', { hasText: 'Restricted Mode' }).waitFor();
        await wb.open('model.py');
        await until('a squiggle', async () => (await wb.squigglesUnder('y.mul_(2)')).length > 0);
        assert.equal(existsSync(mark), false);
    });

    await check('once it is trusted, the setting of the folder is followed', async () => {
        await wb.command('Workspaces: Manage Workspace Trust');
        await page.locator('.workspace-trust-editor').getByRole('button', { name: 'Trust', exact: true }).click();
        await page.getByText('You trust this folder').waitFor();
        await until('the interpreter of the folder', () => existsSync(mark));
        await page.keyboard.press('Escape');
        await wb.open('model.py');
        await until('a squiggle', async () => (await wb.squigglesUnder('y.mul_(2)')).length > 0);
        await until('both runs in the log', () => {
            const log = wb.logText();
            return log.includes('(restricted mode)') && /setting: .*python\.sh: Python 3\.\d+\.\d+ .*used/.test(log);
        });
    });
}
