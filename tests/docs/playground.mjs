// Uses the playground of the built web pages as a person does: node tests/docs/playground.mjs [FOLDER]
// With GRADGUARD_SHOTS=docs/images its picture is written there.
// Prints one line a check and 'N passed, N failed' at the end; exit code 0 only when nothing failed.
import assert from 'node:assert/strict';
import path from 'node:path';
import { open } from './browser.mjs';

const { base, check, close } = await open(path.resolve(process.argv[2] ?? 'site'));
const PATIENCE = { timeout: 180_000 }; // of a loaded machine
const BAD = 'import torch\n\nw = torch.randn(3, requires_grad=True)\ny = w.exp()\ny.mul_(2)\ny.sum().backward()\n';

const squiggle = page => page.locator('.cm-lintRange-error').first().waitFor({ state: 'attached', ...PATIENCE });
const findings = page => page.locator('#gg-findings > li');
const fill = async (page, code) => {
    await page.locator('.cm-content').click();
    await page.keyboard.press('Control+a');
    await page.keyboard.insertText(code);
};
/** Contrast of the text of an element with what lies behind it, as WCAG counts it. */
const contrast = element => {
    const probe = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
    const rgba = color => {
        probe.clearRect(0, 0, 1, 1);
        probe.fillStyle = color;
        probe.fillRect(0, 0, 1, 1);
        return [...probe.getImageData(0, 0, 1, 1).data].map((value, n) => (n === 3 ? value / 255 : value));
    };
    const layers = [];
    for (let each = element; each; each = each.parentElement) {
        layers.unshift(rgba(getComputedStyle(each).backgroundColor));
    }
    const over = (below, [r, g, b, a]) => [r, g, b].map((value, n) => value * a + below[n] * (1 - a));
    const behind = layers.reduce(over, [255, 255, 255]);
    const front = over(behind, rgba(getComputedStyle(element).color));
    const light = color => color.map(value => value / 255).map(value => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4)).reduce((sum, value, n) => sum + value * [0.2126, 0.7152, 0.0722][n], 0);
    const [high, low] = [light(front), light(behind)].sort((a, b) => b - a);
    return (high + 0.05) / (low + 0.05);
};
const readable = async (page, selector) => {
    for (const element of await page.locator(selector).all()) {
        const found = await element.evaluate(contrast);
        assert.ok(found >= 4.5, `${selector} ${await element.innerText()}: ${found.toFixed(2)}`);
    }
};

await check('a program is typed, read, explained, repaired, linked to and kept for use without a network', { permissions: ['clipboard-read', 'clipboard-write'] }, async (page, context) => {
    const sent = [];
    context.on('request', request => sent.push(`${request.method()} ${request.url()} ${request.postData() ?? ''}`));
    await page.goto(`${base}playground.html`);
    await page.evaluate(() => navigator.serviceWorker.addEventListener('message', () => (document.body.dataset.kept = 'yes')));
    // The first example is there before any of Python is.
    assert.match(await page.locator('#gg-editor').innerText(), /torch\.sigmoid/);
    await squiggle(page);
    assert.equal(await findings(page).count(), 2);
    await readable(page, '#gg-status, .gg-place, .gg-fix, #gg-findings a, .tok-keyword, .tok-comment, .tok-number');

    await fill(page, BAD);
    await page.waitForFunction(() => document.querySelectorAll('#gg-findings > li').length === 1, undefined, PATIENCE);
    assert.match(await page.locator('#gg-status').innerText(), /1 found/);
    assert.ok((await findings(page).first().locator('ul li').count()) > 0, 'related places');

    await page.evaluate(() => scrollTo(0, document.getElementById('gg-root').offsetTop));
    await page.locator('.cm-lintRange-error').first().hover();
    assert.match(await page.locator('.gg-hover').innerText(), /saved for backward/);
    if (process.env.GRADGUARD_SHOTS !== undefined) {
        await page.screenshot({ path: path.join(process.env.GRADGUARD_SHOTS, 'playground.png') });
    }
    await page.mouse.move(5, 5);
    // The row of the operation, by keyboard alone.
    await page.locator('.cm-content').focus();
    await page.keyboard.press('Control+Home');
    for (let n = 0; n < 3; n += 1) {
        await page.keyboard.press('ArrowDown');
    }
    for (let n = 0; n < 7; n += 1) {
        await page.keyboard.press('ArrowRight');
    }
    await page.locator('#gg-cursor', { hasText: 'saves y for backward' }).waitFor(PATIENCE);

    await page.locator('#gg-issue').click();
    await page.locator('#gg-status', { hasText: 'Copied.' }).waitFor(PATIENCE);
    const issue = await page.evaluate(() => navigator.clipboard.readText());
    assert.match(issue, /^gradguard \d+\.\d+\.\d+, torch auto\n/);
    assert.ok(issue.includes(BAD) && issue.includes('GG101'));
    await page.locator('#gg-link').click();
    let link = issue;
    for (let n = 0; n < 100 && link === issue; n += 1) {
        await page.waitForTimeout(100);
        link = await page.evaluate(() => navigator.clipboard.readText());
    }
    assert.ok(link.startsWith(base) && link.includes('#code=') && link.length < 400, link);

    // A fix by keyboard.
    await page.locator('.cm-content').focus();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Control+.');
    const fix = page.locator('#gg-offers-list button', { hasText: 'Write y out of place' });
    await fix.waitFor(PATIENCE);
    assert.ok(await page.locator('#gg-offers-list button').first().evaluate(button => button === document.activeElement));
    await fix.press('Enter');
    await page.locator('.cm-line', { hasText: 'y = y.mul(2)' }).waitFor(PATIENCE);
    await page.locator('#gg-status', { hasText: 'Nothing found.' }).waitFor(PATIENCE);
    // Tab leads out of the editor.
    assert.ok(await page.evaluate(() => document.activeElement.closest('.cm-editor') !== null));
    await page.keyboard.press('Tab');
    assert.ok(await page.evaluate(() => document.activeElement.closest('.cm-editor') === null));

    await page.locator('#gg-examples').selectOption('gan');
    await page.locator('#gg-findings > li', { hasText: 'GG106' }).waitFor(PATIENCE);
    await page.locator('#gg-root summary').click();
    await page.getByLabel('GG106').uncheck();
    await page.locator('#gg-status', { hasText: 'Nothing found.' }).waitFor(PATIENCE);
    await page.waitForFunction(() => location.hash.includes('off=GG106'));

    assert.deepEqual(sent.filter(each => !each.startsWith('GET ') || each.includes('code=')), []);
    await page.waitForFunction(() => document.body.dataset.kept === 'yes', undefined, PATIENCE);
    await context.setOffline(true);
    await page.goto('about:blank');
    await page.goto(link);
    await squiggle(page);
    assert.match(await page.locator('.cm-content').innerText(), /y\.mul_\(2\)/);
    // What the theme's search loads in a worker of its own is not known to the page, and kept from the second visit on.
}, /lunr/);

await check(
    'in Korean, in the dark, on a phone, and where libcst cannot be had',
    { viewport: { width: 390, height: 800 }, colorScheme: 'dark', serviceWorkers: 'block', hasTouch: true },
    async page => {
        await page.route('**/fixes.zip', route => route.abort('failed'));
        await page.goto(`${base}ko/rules/inplace_on_saved_tensor.html`);
        await page.locator('a.gg-try').first().click();
        await squiggle(page);
        assert.match(await page.locator('#gg-findings').innerText(), /[가-힣]/);
        assert.ok((await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0, 'too wide');
        await readable(page, '#gg-status, .gg-place, .gg-fix, #gg-findings a, .tok-keyword, .tok-comment, .tok-number');
        assert.match(await page.locator('#gg-libcst').innerText(), /libcst/);
        await page.locator('.gg-fix').first().click();
        await page.locator('#gg-offers-note', { hasText: 'libcst' }).waitFor(PATIENCE);
        await page.goto(`${base}ko/playground.html#code=xxxx`);
        await page.reload();
        await page.locator('#gg-note', { hasText: '주소가 손상' }).waitFor(PATIENCE);
    },
    /fixes\.zip/,
);

process.exit(await close());
