// Runs the unit tests of the parts that need no editor in Node's own runner: node client/scripts/test.mjs
import { spawnSync } from 'node:child_process';
import { readdirSync, rmSync } from 'node:fs';
import * as esbuild from 'esbuild';

const out = 'client/dist/test';
rmSync(out, { recursive: true, force: true });
const tests = readdirSync('client/test').filter(name => name.endsWith('.test.ts'));
if (tests.length === 0) {
    console.error('client/test holds no test');
    process.exit(1);
}
await esbuild.build({
    entryPoints: tests.map(name => `client/test/${name}`),
    outdir: out,
    outExtension: { '.js': '.cjs' },
    bundle: true,
    format: 'cjs',
    platform: 'node',
    target: 'node18',
    sourcemap: 'inline',
    logLevel: 'warning',
});
const files = tests.map(name => `${out}/${name.replace(/\.ts$/, '.cjs')}`);
const run = spawnSync(process.execPath, ['--enable-source-maps', '--test', ...files], { stdio: 'inherit' });
process.exit(run.status ?? 1);
