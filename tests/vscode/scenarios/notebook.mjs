// A notebook is one program: what the first cell saved, the second must not write.
import { until } from '../hands.mjs';

const cell = (id, ...lines) => ({ cell_type: 'code', id, execution_count: null, metadata: {}, outputs: [], source: lines.map((line, n) => (n < lines.length - 1 ? `${line}\n` : line)) });
const NOTEBOOK = {
    cells: [cell('a', 'import torch', 'w = torch.randn(3, requires_grad=True)', 'y = w.exp()'), cell('b', 'y.mul_(2)', 'y.sum().backward()'), ...Array.from({ length: 30 }, (_, n) => cell(`f${n}`, '# far', '# away', '', '')), cell('z', 'z = w.exp()', 'z.mul_(2)', 'z.sum().backward()')],
    metadata: { language_info: { name: 'python' } },
    nbformat: 4,
    nbformat_minor: 5,
};

export const options = { files: { 'study.ipynb': JSON.stringify(NOTEBOOK) } };

export async function run({ wb, check }) {
    const { page } = wb;
    const cells = page.locator('.notebookOverlay .cell .monaco-editor');
    const squiggles = n => cells.nth(n).locator('[class*="squiggly-error"], [class*="squiggly-warning"]');

    await check('the second cell shows the write, the first is clean', async () => {
        await wb.open('study.ipynb');
        await until('two cells', async () => (await cells.count()) >= 2);
        await until('a squiggle in the second cell', async () => (await squiggles(1).count()) > 0);
        if ((await squiggles(0).count()) > 0) {
            throw new Error('the first cell has a squiggle');
        }
    });

    await check('the Problems panel leads from the second cell to the first', async () => {
        const rows = await until('the finding', async () => {
            const found = await wb.problems();
            return found.some(row => row.includes('GG101')) && found;
        });
        if (!rows.some(row => row.includes('[Ln 3, Col 5]'))) {
            await page.locator('.markers-panel .monaco-list-row', { hasText: 'GG101' }).locator('.monaco-tl-twistie').click();
        }
        await until('the save in the third line of the first cell', async () => (await wb.problems()).some(row => row.includes('exp') && row.includes('[Ln 3, Col 5]')));
        await wb.closePanel();
    });

    await check('fix all changes the cell', async () => {
        await cells.nth(1).locator('.view-line').last().click();
        await wb.command('gradguard: Fix All in File');
        await until('the fixed cell', async () => (await cells.nth(1).innerText()).replaceAll('\u00a0', ' ').includes('y = y.mul(2)'));
        await until('no squiggle', async () => (await squiggles(1).count()) === 0);
    });

    await check('a cell that was never on the screen is fixed, too, and one undo takes all back', async () => {
        const sources = () => JSON.parse(wb.read('study.ipynb')).cells.map(each => each.source.join(''));
        const saved = async () => {
            await wb.saved();
            return sources();
        };
        const fixed = await saved();
        if (fixed.length !== 33 || !fixed[0].endsWith('y = w.exp()') || !fixed[1].startsWith('y = y.mul(2)') || !fixed[32].includes('z = z.mul(2)')) {
            throw new Error(JSON.stringify(fixed));
        }
        await cells.nth(1).locator('.view-line').last().click();
        await page.keyboard.press('Control+z');
        const back = await saved();
        if (!back[1].startsWith('y.mul_(2)') || !back[32].includes('z.mul_(2)')) {
            throw new Error(JSON.stringify(back));
        }
    });
}
