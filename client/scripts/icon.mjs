// Draws client/media/icon.png from icon.svg with Chromium: node client/scripts/icon.mjs
import { readFileSync } from 'node:fs';
import { chromium } from 'playwright-core';

const SIZE = 256;
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] });
const page = await browser.newPage({ viewport: { width: SIZE, height: SIZE } });
await page.setContent(`<style>body{margin:0}svg{display:block}</style>${readFileSync('client/media/icon.svg', 'utf8')}`);
await page.screenshot({ path: 'client/media/icon.png', omitBackground: true });
await browser.close();
