// Looks at the built web pages in a browser: node tests/docs/site.mjs [FOLDER]
// Prints one line a check and 'N passed, N failed' at the end; exit code 0 only when nothing failed.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';

const folder = path.resolve(process.argv[2] ?? 'site');
const pages = fs.readdirSync(folder, { recursive: true }).filter(name => name.endsWith('.html') && name !== '404.html').sort();
if (pages.length === 0) {
    console.error(`${folder} has no pages: run make docs`);
    process.exit(1);
}
const TYPES = { '.html': 'text/html', '.css': 'text/css', '.js': 'text/javascript', '.json': 'application/json', '.svg': 'image/svg+xml', '.png': 'image/png' };
const server = http.createServer((request, response) => {
    const file = path.join(folder, decodeURIComponent(new URL(request.url, 'http://localhost').pathname));
    if (!file.startsWith(folder) || !fs.existsSync(file) || !fs.statSync(file).isFile()) {
        response.writeHead(404).end();
        return;
    }
    response.writeHead(200, { 'Content-Type': TYPES[path.extname(file)] ?? 'application/octet-stream' }).end(fs.readFileSync(file));
});
await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
const base = `http://127.0.0.1:${server.address().port}/`;
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'] });

let passed = 0;
let failed = 0;
/** `body` gets a page of its own; whatever the page complains about is a failure. */
async function check(what, options, body) {
    const context = await browser.newContext(options);
    const page = await context.newPage();
    const complaints = [];
    page.on('response', reply => reply.status() >= 400 && complaints.push(`${reply.status()} ${reply.url()}`));
    page.on('requestfailed', request => request.failure().errorText !== 'net::ERR_ABORTED' && complaints.push(`no answer: ${request.url()}`));
    page.on('request', request => /^(https?:)/.test(request.url()) && !request.url().startsWith(base) && complaints.push(`elsewhere: ${request.url()}`));
    page.on('pageerror', error => complaints.push(String(error)));
    try {
        await body(page);
        // Without a server the theme has no search, which it tells the console.
        if (!page.url().startsWith('file:')) {
            assert.deepEqual(complaints, []);
        }
        passed += 1;
        console.log(`ok   ${what}`);
    } catch (error) {
        failed += 1;
        console.log(`FAIL ${what}: ${String(error.message).split('\n').slice(0, 12).join('\n     ')}`);
    } finally {
        await context.close();
    }
}

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

await browser.close();
server.close();
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
