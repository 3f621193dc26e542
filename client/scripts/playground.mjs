// Bundles the page of the playground into build/playground: node client/scripts/playground.mjs
// What it runs on is made by client/scripts/web.mjs; docs/playground.py puts the two together.
import { copyFileSync, mkdirSync } from 'node:fs';
import * as esbuild from 'esbuild';

const OUT = 'build/playground';
mkdirSync(OUT, { recursive: true });
await esbuild.build({
    entryPoints: ['client/playground/main.ts'],
    outfile: `${OUT}/page.js`,
    bundle: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    minify: true,
    logLevel: 'warning',
});
for (const name of ['page.css', 'serviceWorker.js']) {
    copyFileSync(`client/playground/${name}`, `${OUT}/${name}`);
}
