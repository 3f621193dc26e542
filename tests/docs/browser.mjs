// The built web pages, served from here and opened in a browser.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { chromium } from 'playwright-core';

const TYPES = {
    '.html': 'text/html',
    '.css': 'text/css',
    '.js': 'text/javascript',
    '.json': 'application/json',
    '.svg': 'image/svg+xml',
    '.png': 'image/png',
    '.wasm': 'application/wasm',
};

/** Serves a folder, and gives a way to look at its pages. */
export async function open(folder) {
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
    /** `body` gets a page of its own; whatever the page complains about is a failure. `expected` are complaints that are part of the case. */
    async function check(what, options, body, expected = /^$/) {
        const context = await browser.newContext(options);
        const page = await context.newPage();
        const complaints = [];
        const complain = text => !expected.test(text) && complaints.push(text);
        context.on('response', reply => reply.status() >= 400 && complain(`${reply.status()} ${reply.url()}`));
        context.on('requestfailed', request => request.failure().errorText !== 'net::ERR_ABORTED' && complain(`no answer: ${request.url()}`));
        context.on('request', request => /^(https?:)/.test(request.url()) && !request.url().startsWith(base) && complain(`elsewhere: ${request.url()}`));
        page.on('pageerror', error => complain(String(error)));
        try {
            await body(page, context);
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

    /** Ends all; the exit code. */
    async function close() {
        await browser.close();
        server.close();
        console.log(`${passed} passed, ${failed} failed`);
        return failed === 0 && passed > 0 ? 0 : 1;
    }
    return { base, browser, check, close };
}
