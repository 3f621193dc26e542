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
const run = spawnSync(process.execPath, ['--enable-source-maps', '--test', '--test-reporter=spec', ...files], { encoding: 'utf8' });
process.stdout.write(run.stdout);
process.stderr.write(run.stderr);
const lines = run.stdout.split('\n').map(line => line.replace(/^\W+/, '').split(' '));
const count = kind => Number(lines.find(words => words[0] === kind && words.length === 2)?.[1] ?? 0);
console.log(`${count('pass')} passed, ${count('fail')} failed`);
process.exit(count('pass') > 0 ? (run.status ?? 1) : 1);
