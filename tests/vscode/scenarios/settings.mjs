// What is installed, and settings that change what the editor shows.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { until } from '../hands.mjs';

const TEXT = 'import torch\n\nw = torch.randn(3, requires_grad=True)\ny = w.exp()\ny.mul_(2)\ny.sum().backward()\n';
const WRITE = 'y.mul_(2)';

export const options = { files: { 'model.py': TEXT } };

export async function run({ wb, check }) {
    const { page } = wb;
    const squiggled = async () => (await wb.squigglesUnder(WRITE)).length > 0;

    await check('the package has the server, its packages with their licences, pictures and texts, and no tests', () => {
        const [folder] = readdirSync(path.join(wb.home, 'extensions')).filter(name => name.startsWith('gradguard.'));
        const files = readdirSync(path.join(wb.home, 'extensions', folder), { recursive: true }).map(name => name.replaceAll(path.sep, '/'));
        const carried = readFileSync('client/bundled/requirements.txt', 'utf8').match(/^[\w.-]+(?===)/gm);
        assert.ok(carried.length > 5);
        for (const name of carried) {
            const licence = new RegExp(`/${name.replaceAll(/[-_.]/g, '[-_.]')}-[\\d.]+\\.dist-info/(?:licenses/)?LICENSE`, 'i');
            assert.ok(files.some(file => licence.test(file)), `the licence of ${name}`);
        }
        const needed = [
            'client/media/icon.png', 'readme.md', 'changelog.md', 'LICENSE.txt', 'package.nls.ko.json', 'client/l10n/bundle.l10n.ko.json',
            'server/gradguard/lsp/server.py', 'server/gradguard/rules/ko/inplace_on_leaf.md', 'docs/images/squiggle-dark.png',
        ];
        assert.deepEqual(needed.filter(file => !files.includes(file)), []);
        assert.deepEqual(files.filter(file => /(^|\/)(tests?|__pycache__|node_modules|fixtures|src)(\/|$)|\.(ts|map|pyc)$/.test(file)), []);
    });

    await check('hints in the text tell what is kept, once they are wanted', async () => {
        await wb.open('model.py');
        await until('a squiggle', squiggled);
        assert.ok(!(await wb.text()).includes('saved by'));
        wb.change({ 'gradguard.inlayHints': true });
        await wb.shows('saved by exp');
        wb.change({ 'gradguard.inlayHints': false });
        await wb.hides('saved by exp');
    });

    await check('a line above backward tells how much is kept for it, once that is wanted', async () => {
        const lens = wb.editor.locator('.codelens-decoration', { hasText: 'saved until here' });
        assert.equal(await lens.count(), 0);
        wb.change({ 'gradguard.codeLens': true });
        await lens.first().waitFor();
        wb.change({ 'gradguard.codeLens': false });
        await lens.first().waitFor({ state: 'detached' });
    });

    await check('with `run: onSave` typing changes nothing, saving does', async () => {
        wb.change({ 'gradguard.run': 'onSave' });
        await page.waitForTimeout(1_500); // the editor reads its settings file
        await wb.caretOn('y = w.exp()');
        await page.keyboard.press('End');
        await page.keyboard.type(' + 0');
        await wb.shows('w.exp() + 0');
        await page.waitForTimeout(2_000); // time enough for an answer to arrive
        assert.equal(await squiggled(), true);
        await wb.saved();
        await until('no squiggle', async () => !(await squiggled()));
        wb.change({ 'gradguard.run': 'onType' });
    });

    await check('the messages of the protocol are in the log, once they are wanted', async () => {
        assert.ok(!wb.logText().includes('textDocument/didChange'));
        wb.change({ 'gradguard.trace.server': 'messages' });
        await page.waitForTimeout(1_500);
        await wb.caretOn('import torch');
        await page.keyboard.press('End');
        await page.keyboard.type('  #');
        await until('the change in the log', () => wb.logText().includes('textDocument/didChange'));
    });
}
