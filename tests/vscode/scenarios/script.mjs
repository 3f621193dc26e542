// A training script: what a person sees, and what the keyboard does.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { until } from '../hands.mjs';
import { serverPids } from '../processes.mjs';
import { repaired, reported } from '../reported.mjs';

const TRAIN = readFileSync(new URL('../workspace/train.py', import.meta.url), 'utf8');
const WRITE = 'gate.mul_(0.5)';
const KEEP = 'total += loss';

export const options = { files: { 'train.py': TRAIN } };
const SQUIGGLE = { error: 'error', warning: 'warning', information: 'info' };

export async function run({ wb, check, shots }) {
    const { page } = wb;
    const closeOthers = async () => {
        await wb.command('View: Close All Editors');
        await wb.open('train.py');
        await wb.shows('import torch');
    };

    const findings = reported(TRAIN);
    const [write, keep] = ['GG101', 'GG201'].map(code => findings.find(finding => finding.code === code));
    assert.ok(write && keep, `the command line reports ${findings.map(finding => finding.code).join(', ')} in train.py`);
    const underWrite = SQUIGGLE[write.severity];
    const underKeep = SQUIGGLE[keep.severity];

    await check('the mistakes of a training script are underlined as the command line reports them', async () => {
        await wb.open('train.py');
        await until('a squiggle under the write', async () => (await wb.squigglesUnder(WRITE)).includes(underWrite));
        await until('a squiggle under the accumulation', async () => (await wb.squigglesUnder(KEEP)).includes(underKeep));
    });

    await check('the Problems panel lists them, with the related places', async () => {
        const rows = await until('both findings', async () => {
            const found = await wb.problems();
            return found.some(row => row.includes('GG101')) && found.some(row => row.includes('GG201')) && found;
        });
        const finding = page.locator('.markers-panel .monaco-list-row', { hasText: 'GG101' });
        const [save, backward] = write.related;
        const places = [save, backward].map(place => `[Ln ${place.line}, Col ${place.column}]`);
        if (!rows.some(row => row.includes(places[0]))) {
            await finding.locator('.monaco-tl-twistie').click();
        }
        await until('the related places', async () => {
            const now = await wb.problems();
            return places.every(place => now.some(row => row.includes(place)));
        });
        await wb.caretOn('gate.mul_');
        await shots('squiggle');
        await page.locator('.markers-panel .monaco-list-row', { hasText: places[0] }).first().dblclick();
        await page.locator('.statusbar-item', { hasText: `Ln ${save.line},` }).waitFor();
    });

    await check('the hover tells why', async () => {
        await wb.closePanel();
        await wb.caretOn('import torch');
        const hover = await wb.hover('mul_', 'GG101');
        assert.match(hover, /sigmoid/);
        await shots('hover');
        await wb.noSelection();
    });

    await check('the quick fix is applied by keyboard', async () => {
        const offered = await wb.quickFixes('gate.mul_', write.fixes[0].title);
        assert.match(offered, /ignore/i);
        await shots('quickfix');
        await page.keyboard.press('Enter');
        await wb.shows('gate = gate.mul(0.5)');
        await until('no finding of the write any more', async () => !(await wb.problems()).some(row => row.includes('GG101')));
    });

    await check('undo brings the finding back', async () => {
        await wb.click('import torch');
        await page.keyboard.press('Control+z');
        await wb.shows(WRITE);
        await until('the squiggle again', async () => (await wb.squigglesUnder(WRITE)).includes(underWrite));
    });

    await check('a half-typed line leaves the other findings where they are', async () => {
        await wb.closePanel();
        await wb.caretOn('optimizer.step()');
        await page.keyboard.press('End');
        await page.keyboard.type('\nif torch.isnan(loss', { delay: 40 });
        await wb.shows('if torch.isnan(loss');
        await page.waitForTimeout(1_500); // time enough for a wrong answer to arrive
        assert.deepEqual(await wb.squigglesUnder(WRITE), [underWrite]);
        const rows = (await wb.problems()).filter(row => row.includes('GG'));
        assert.ok(rows.some(row => row.includes('GG101')), rows.join('\n'));
        await wb.command('File: Revert File');
        await wb.closePanel();
        await wb.hides('isnan');
    });

    await check('a changed setting takes effect without a restart', async () => {
        await wb.closePanel();
        wb.change({ 'gradguard.rules': { GG201: 'off' } });
        await until('the accumulation is no longer reported', async () => (await wb.squigglesUnder(KEEP)).length === 0);
        assert.deepEqual(await wb.squigglesUnder(WRITE), [underWrite]);
        wb.change({ 'gradguard.rules': { GG201: 'error' } });
        await until('it is an error now', async () => (await wb.squigglesUnder(KEEP)).includes('error'));
        wb.change({ 'gradguard.rules': {} });
        await until('it is as before', async () => (await wb.squigglesUnder(KEEP)).includes(underKeep));
    });

    await check('the page of a rule opens beside the code', async () => {
        await wb.caretOn('mul_');
        await wb.command('gradguard: Explain Rule or Operation under Cursor');
        await page.locator('.tab', { hasText: 'Preview' }).first().waitFor();
        const frame = page.frameLocator('iframe.webview.ready').first().frameLocator('iframe#active-frame');
        await frame.getByText('GG101').first().waitFor();
        await closeOthers();
    });

    await check('the status item tells version, Python and torch table', async () => {
        await wb.click('import torch');
        const text = await wb.status();
        assert.match(text, /gradguard \d+\.\d+\.\d+/);
        assert.match(text, /Python 3\.\d+/);
        assert.match(text, /torch table \d+\.\d+/);
    });

    await check('restarting the server brings the findings back, from a new process', async () => {
        const before = serverPids(wb.home);
        assert.equal(before.length, 1);
        await wb.command('gradguard: Restart Server');
        await until('another process', () => {
            const now = serverPids(wb.home);
            return now.length === 1 && now[0] !== before[0];
        });
        await until('the squiggle again', async () => (await wb.squigglesUnder(WRITE)).includes(underWrite));
    });

    await check('the log tells how Python was found', async () => {
        await wb.command('gradguard: Show Log');
        await until('the log in the panel', async () => /\[info\]/.test(await wb.output()));
        assert.match(wb.logText(), /PATH: python3: Python 3\.\d+\.\d+ .*used/);
        await wb.closePanel();
    });

    await check('a server that dies is started again by itself', async () => {
        const [pid] = serverPids(wb.home);
        process.kill(pid, 'SIGKILL');
        await until('another process', () => {
            const now = serverPids(wb.home);
            return now.length === 1 && now[0] !== pid;
        });
        await until('the squiggle again', async () => (await wb.squigglesUnder(WRITE)).includes(underWrite));
        assert.deepEqual(await wb.popups(), []);
    });

    await check('the debug information is a page to send', async () => {
        await wb.command('gradguard: Show Debug Information');
        await page.locator('.tab.active', { hasText: 'debug information' }).first().waitFor();
        await wb.shows('## How Python was found');
        await wb.shows('1 restart after a crash');
        await wb.shows('torch');
        await closeOthers();
    });

    await check('saving applies the safe fixes where the user wants that, and gives what the command line gives', async () => {
        const wanted = repaired(TRAIN);
        assert.notEqual(wanted, TRAIN);
        wb.change({ 'editor.codeActionsOnSave': { 'source.fixAll.gradguard': 'explicit' } });
        await page.waitForTimeout(1_000); // the editor reads its settings file
        const now = () => wb.read('train.py').replace(/import torch +\n/, 'import torch\n');
        // One fix may make another one safe: each save makes what is safe by then.
        for (let saves = 0; saves < 3 && now() !== wanted; saves++) {
            await page.waitForTimeout(1_000);
            await wb.click('import torch');
            await page.keyboard.press('End');
            await page.keyboard.type(' ');
            await wb.saved();
        }
        assert.equal(now(), wanted);
        await until('no finding left', async () => !(await wb.problems()).some(row => row.includes('GG')));
    });
}
