// Two folders with settings of their own, one server; the whole workspace; a run under the monitor.
import assert from 'node:assert/strict';
import path from 'node:path';
import { python } from '../../../client/scripts/python.mjs';
import { until } from '../hands.mjs';
import { serverPids } from '../processes.mjs';

const TEXT = 'import torch\n\nw = torch.randn(3, requires_grad=True)\ny = w.exp()\ny.mul_(2)\ny.sum().backward()\n';

export const options = {
    open: 'both.code-workspace',
    files: {
        'strict/one.py': TEXT,
        'strict/other.py': TEXT.replaceAll('y', 'z').replace('import torch', 'import torch  # never opened'),
        'lenient/two.py': TEXT,
        'lenient/.vscode/settings.json': JSON.stringify({ 'gradguard.rules': { 'inplace-on-saved-tensor': 'off' } }),
        'both.code-workspace': JSON.stringify({ folders: [{ path: 'strict' }, { path: 'lenient' }] }),
    },
    settings: { 'gradguard.interpreter': [path.resolve(python())], 'terminal.integrated.gpuAcceleration': 'off' },
};

export async function run({ wb, check }) {
    const { page } = wb;

    await check('each folder has its own settings, one server serves both', async () => {
        await wb.open('one.py');
        await until('a squiggle', async () => (await wb.squigglesUnder('y.mul_(2)')).length > 0);
        await wb.open('two.py');
        await wb.shows('y.mul_(2)');
        await page.waitForTimeout(1_500); // time enough for a finding to arrive
        assert.deepEqual(await wb.squigglesUnder('y.mul_(2)'), []);
        assert.equal(serverPids(wb.home).length, 1);
    });

    await check('the whole workspace is checked by command, files that are not open as well', async () => {
        await wb.command('gradguard: Check Workspace');
        await until('the finding of a closed file', async () => (await wb.problems()).some(row => row.includes('other.py')));
        assert.ok(!(await wb.problems()).some(row => row.includes('two.py')));
        await wb.closePanel();
    });

    await check('a script runs under the monitor in a terminal', async () => {
        await wb.open('one.py');
        await wb.command('gradguard: Run with Monitor');
        await until('the report', async () => (await page.locator('.xterm-rows').allInnerTexts()).some(text => /watched \d+ operators/.test(text)), { patience: 120_000 });
    });

    await check('what the monitor saw stands beside what was read', async () => {
        await wb.closePanel();
        await until('both findings of the script', async () => (await wb.problems()).filter(row => row.includes('GG101') && row.includes('[Ln 5')).length >= 3);
    });
}
