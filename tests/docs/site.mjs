// Looks at the built web pages in a browser: node tests/docs/site.mjs [FOLDER]
// Prints one line a check and 'N passed, N failed' at the end; exit code 0 only when nothing failed.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { open } from './browser.mjs';

const folder = path.resolve(process.argv[2] ?? 'site');
const pages = fs.readdirSync(folder, { recursive: true }).filter(name => name.endsWith('.html') && name !== '404.html').sort();
if (pages.length === 0) {
    console.error(`${folder} has no pages: run make docs`);
    process.exit(1);
}
const { base, check, close } = await open(folder);
const PHONE = { viewport: { width: 390, height: 800 } };

for (const [title, part] of [['English', pages.filter(name => !name.startsWith('ko'))], ['Korean', pages.filter(name => name.startsWith('ko'))]]) {
    await check(`every ${title} page loads all it needs from here, and fits a phone`, PHONE, async page => {
        assert.ok(part.length > 30);
        for (const name of part) {
            await page.goto(base + name);
            assert.equal(await page.locator('html').getAttribute('lang'), title === 'Korean' ? 'ko' : 'en', name);
            assert.equal(await page.locator('article h1').count(), 1, name);
            assert.ok((await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0, `${name} is too wide`);
        }
    });
}

for (const [where, language, shares] of [[base, 'English', 'shares memory with'], [base + 'ko/', 'Korean', '메모리를 공유'], [`${pathToFileURL(folder)}/`, 'English, without a server', 'shares memory with']]) {
    await check(`the table of operations is searched while one types (${language})`, {}, async page => {
        await page.goto(`${where}ops.html`);
        const rows = page.locator('#ops tr');
        await rows.first().waitFor();
        const all = await page.locator('#ops-count').innerText();
        await page.locator('#ops-search').pressSequentially('Tensor.view');
        await page.waitForFunction(before => document.getElementById('ops-count').textContent !== before, all);
        const names = await rows.locator('td:first-child').allInnerTexts();
        assert.ok(names.length > 0 && names.every(name => name.toLowerCase().includes('tensor.view')), names.join());
        assert.ok((await rows.first().innerText()).includes(shares));
        assert.ok(page.url().endsWith('#q=Tensor.view'));
        await page.reload();
        await page.waitForFunction(count => document.querySelectorAll('#ops tr').length === count, names.length);
    });
}

for (const scheme of ['light', 'dark']) {
    await check(`the first page shows its picture in ${scheme}`, { colorScheme: scheme }, async page => {
        await page.goto(`${base}index.html`, { waitUntil: 'networkidle' });
        const shown = page.locator('article img:visible');
        assert.equal(await shown.count(), 1);
        assert.match(await shown.getAttribute('src'), new RegExp(`squiggle-${scheme}`));
        assert.ok(await shown.evaluate(image => image.complete && image.naturalWidth > 600));
    });
}

await check('a word of an error message leads to the rule', {}, async page => {
    await page.goto(`${base}index.html`);
    await page.locator('input[name="query"]').fill('modified by an inplace operation');
    await page.locator('.md-search-result__item', { hasText: 'GG101' }).first().waitFor();
});

process.exit(await close());
