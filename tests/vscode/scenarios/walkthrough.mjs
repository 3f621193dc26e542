// The first start: the steps of the walkthrough, their pictures, and what their buttons do.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { until } from '../hands.mjs';

const json = name => JSON.parse(readFileSync(new URL(`../../../${name}`, import.meta.url), 'utf8'));
const { steps } = json('package.json').contributes.walkthroughs[0];
const texts = json('package.nls.json');
const of = key => texts[key.slice(1, -1)];
/** What stands before the button, and the words on it. */
const parts = step => /^(.*)\n\[(.*)\]\(command:.*\)$/s.exec(of(step.description)).slice(1);

const TEXT = 'import torch\n\nw = torch.randn(3, requires_grad=True)\ny = w.exp()\ny.mul_(2)\ny.sum().backward()\n';
const SQUIGGLED = 'y.mul_(2)';

export const options = { files: { 'model.py': TEXT } };

export async function run({ wb, check }) {
    const { page } = wb;
    const started = page.locator('.gettingStartedContainer');
    const row = id => started.locator(`.getting-started-step[data-step-id$="#${id}"]`);

    await page.setViewportSize({ width: 1600, height: 900 }); // in a narrow window VS Code leaves the pictures out
    await wb.open('model.py');
    await until('a squiggle', async () => (await wb.squigglesUnder(SQUIGGLED)).length > 0);
    await wb.caretOn('mul_');

    const begin = async () => {
        await wb.commandOn('Welcome: Open Walkthrough', texts['walkthrough.title']);
        await started.getByText(texts['walkthrough.description']).waitFor();
    };
    const show = async id => {
        if ((await row(id).getAttribute('aria-expanded')) !== 'true') {
            await row(id).click();
        }
        await until(`step ${id} open`, async () => (await row(id).getAttribute('aria-expanded')) === 'true');
    };

    await check('the walkthrough has its steps in order', async () => {
        await begin();
        assert.deepEqual(await started.locator('.getting-started-step .step-title').allInnerTexts(), steps.map(step => of(step.title)));
    });

    for (const step of steps) {
        await check(`step "${of(step.title)}" shows its text, its button and its ${step.media.image === undefined ? 'page' : 'picture'}`, async () => {
            await show(step.id);
            const [text, button] = parts(step);
            await row(step.id).getByText(text, { exact: true }).waitFor();
            await row(step.id).getByRole('button', { name: button, exact: true }).waitFor();
            if (step.media.image === undefined) {
                const frame = page.frameLocator('.getting-started-media iframe').frameLocator('iframe#active-frame');
                await frame.getByText('item-in-loop').first().waitFor();
                return;
            }
            const picture = started.locator('.getting-started-media img');
            const loaded = () => picture.evaluate(image => image.complete && image.naturalWidth > 600 && image.currentSrc, undefined, { timeout: 5_000 });
            await until('the picture', async () => decodeURIComponent((await loaded()) || '').includes(step.media.image.light));
            assert.equal(await picture.getAttribute('alt'), of(step.media.altText));
        });
    }

    // Escape or another editor may have taken the steps off the screen; VS Code disables them then.
    const press = async id => {
        if (!(await row(id).isEnabled({ timeout: 2_000 }).catch(() => false))) {
            await begin();
        }
        await show(id);
        await row(id).locator('.button-container').getByRole('button').click();
    };
    const done = id =>
        until(`step ${id} marked as done`, async () => {
            await begin();
            const box = row(id).locator('[role="checkbox"]').first();
            await until('its mark', async () => (await box.getAttribute('aria-checked', { timeout: 2_000 })) === 'true', { patience: 10_000 });
            return true;
        });

    await check('the button of the first step opens the Problems panel', async () => {
        await press('finding');
        await page.locator('.markers-panel .monaco-list-row', { hasText: 'GG101' }).waitFor();
        await wb.closePanel();
        await done('finding');
    });

    await check('the button of the second explains what the cursor is on, in the file behind the page', async () => {
        await press('hover');
        const frame = page.frameLocator('iframe.webview.ready').first().frameLocator('iframe#active-frame');
        await frame.getByText('inplace-on-saved-tensor').first().waitFor();
        await done('hover');
    });

    await check('the button of the third repairs that file', async () => {
        await press('fix');
        await wb.shows('y = y.mul(2)');
        await until('no squiggle', async () => (await wb.squigglesUnder('y = y.mul(2)')).length === 0);
        await done('fix');
    });

    await check('the button of the last opens the settings of gradguard', async () => {
        await press('settings');
        const shown = page.locator('.settings-editor .setting-item-category', { hasText: 'Gradguard' });
        await until('settings', async () => (await shown.count()) > 1);
        assert.deepEqual(await wb.popups(), []);
    });
}
