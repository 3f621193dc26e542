// Display language Korean: whatever gradguard says is said in Korean. The editor's own texts are in no package that
// the tests install, so those stay English.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { until } from '../hands.mjs';

const json = name => JSON.parse(readFileSync(new URL(`../../../${name}`, import.meta.url), 'utf8'));
const { contributes } = json('package.json');
const titles = json('package.nls.ko.json');
const texts = json('client/l10n/bundle.l10n.ko.json');
const page101 = readFileSync(new URL('../../../server/gradguard/rules/ko/inplace_on_saved_tensor.md', import.meta.url), 'utf8');
const TEXT = 'import torch\n\nw = torch.randn(3, requires_grad=True)\ny = w.exp()\ny.mul_(2)\ny.sum().backward()\n';
const HANGUL = /[가-힣]/;

export const options = { files: { 'model.py': TEXT }, language: 'ko' };

export async function run({ wb, check }) {
    const { page } = wb;

    await check('a finding and the places that explain it', async () => {
        await wb.open('model.py');
        await until('a squiggle', async () => (await wb.squigglesUnder('y.mul_(2)')).length > 0);
        const rows = (await wb.problems()).filter(row => row.includes('[Ln '));
        assert.ok(rows.length > 0);
        assert.deepEqual(rows.filter(row => !HANGUL.test(row)), []);
        await wb.closePanel();
    });

    await check('every command that can be called here is listed by its Korean title', async () => {
        const wanted = contributes.commands.map(each => `${each.category}: ${titles[each.title.slice(1, -1)]}`);
        const listed = await wb.commandsOf('gradguard', wanted.length);
        assert.deepEqual(listed.map(row => row.split('\n')[0]).sort(), wanted.sort());
    });

    await check('the hover', async () => {
        const hover = await wb.hover('mul_', 'GG101');
        assert.match(hover, /^이유: .*[가-힣]/m);
        await wb.noSelection();
    });

    await check('the quick fixes', async () => {
        const offered = await wb.quickFixes('y.mul_', '제자리가 아닌 방식으로 쓰기');
        assert.match(offered, /이 줄에서 GG101 무시/);
        await page.keyboard.press('Escape');
    });

    await check('the status item', async () => {
        const text = await wb.status();
        const [before, after] = texts['torch table {0}'].split('{0}');
        assert.match(text, new RegExp(`${before}\\d+\\.\\d+${after}`));
        assert.ok(text.includes(texts['Details']), text);
    });

    await check('the page of a rule', async () => {
        await wb.caretOn('mul_');
        await wb.command('gradguard: Explain Rule or Operation under Cursor');
        const frame = page.frameLocator('iframe.webview.ready').first().frameLocator('iframe#active-frame');
        const [heading] = page101.match(/(?<=^## ).*$/m);
        await frame.getByRole('heading', { name: heading }).waitFor();
        await wb.command('View: Close All Editors');
    });

    await check('the settings', async () => {
        await wb.command('Preferences: Open Settings (UI)');
        const editor = page.locator('.settings-editor');
        await editor.waitFor();
        await page.keyboard.type('gradguard.enable');
        await editor.getByText(titles['config.enable']).first().waitFor();
    });
}
