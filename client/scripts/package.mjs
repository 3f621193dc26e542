// Builds the .vsix, ready to install, with the server and its Python packages inside:
//   node client/scripts/package.mjs [--target TARGET] [--out FILE] [--quick] [--browser]
// --quick leaves out the search for secrets, which takes most of the time. TARGET is a platform of the marketplace (default: this machine's) or "universal"; see client/scripts/libs.py.
// The target "web" is for editors that run in a browser, where there is no Python; "universal" is for both. --browser adds to
// the package of a platform what a browser needs.
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { python, runPython } from './python.mjs';

const STAGE = 'build/vsix';

function option(name, fallback) {
    const at = process.argv.indexOf(name);
    return at < 0 ? fallback : process.argv[at + 1];
}

function fail(message) {
    console.error(`package.mjs: ${message}`);
    process.exit(1);
}

const manifest = JSON.parse(readFileSync('package.json', 'utf8'));
const target = option('--target', `${process.platform}-${process.arch}`);
const out = path.resolve(option('--out', `dist/gradguard-${manifest.version}${target === 'universal' ? '' : `-${target}`}.vsix`));

const version = /__version__ = "([^"]+)"/.exec(readFileSync('server/gradguard/__init__.py', 'utf8'))?.[1];
if (version !== manifest.version) {
    fail(`package.json is version ${manifest.version}, server/gradguard/__init__.py ${version}`);
}

runPython(['client/scripts/settings.py', '--check'], { env: { ...process.env, PYTHONPATH: 'server' } });
const inBrowser = ['web', 'universal'].includes(target) || process.argv.includes('--browser');
const onMachine = target !== 'web';
if (onMachine) {
    runPython(['client/scripts/libs.py', target]);
}
for (const script of [...(onMachine ? ['bundle'] : []), ...(inBrowser ? ['web'] : [])]) {
    const bundle = spawnSync(process.execPath, [`client/scripts/${script}.mjs`, '--production'], { stdio: 'inherit' });
    if (bundle.status !== 0) {
        fail(`${script}.mjs failed`);
    }
}

// What is shipped is copied by name, so that nothing else of the repository can slip in.
rmSync(STAGE, { recursive: true, force: true });
const MACHINE = {
    'client/dist/extension.js': 'client/dist/extension.js',
    'client/bundled/compiled': 'client/bundled/compiled',
    'client/bundled/libs': 'client/bundled/libs',
    'client/bundled/tool': 'client/bundled/tool',
    'server/gradguard': 'server/gradguard',
};
const BROWSER = { 'client/dist/web': 'client/dist/web' };
const SHIPPED = {
    ...(onMachine ? MACHINE : {}),
    ...(inBrowser ? BROWSER : {}),
    'client/l10n': 'client/l10n',
    'client/media': 'client/media',
    'client/README.md': 'README.md',
    'docs/images': 'docs/images',
    'package.nls.json': 'package.nls.json',
    'package.nls.ko.json': 'package.nls.ko.json',
    'CHANGELOG.md': 'CHANGELOG.md',
    LICENSE: 'LICENSE',
};
const left = /(^|\/)(__pycache__|\.DS_Store)$|\.(pyc|svg|map)$/;
for (const [from, to] of Object.entries(SHIPPED)) {
    if (!existsSync(from)) {
        fail(`${from} is missing`);
    }
    cpSync(from, path.join(STAGE, to), { recursive: true, filter: name => !left.test(name) });
}
const { devDependencies: _d, scripts: _s, private: _p, ...shipped } = manifest;
for (const [entry, there] of [['main', onMachine], ['browser', inBrowser]]) {
    if (!there) {
        delete shipped[entry];
    }
}
writeFileSync(path.join(STAGE, 'package.json'), `${JSON.stringify(shipped, null, 2)}\n`);
writeFileSync(path.join(STAGE, '.vscodeignore'), '**/__pycache__/**\n');

mkdirSync(path.dirname(out), { recursive: true });
const started = Date.now();
const vsce = spawnSync(
    process.execPath,
    [
        path.resolve('node_modules/@vscode/vsce/vsce'),
        'package',
        '--no-dependencies', // all is in the bundle
        '--skip-license',
        ...(process.argv.includes('--quick') ? ['--allow-package-all-secrets'] : []),
        ...(target === 'universal' ? [] : ['--target', target]),
        '--out',
        out,
    ],
    // With a fixed time the same sources give the same file, byte for byte.
    { cwd: STAGE, stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, SOURCE_DATE_EPOCH: process.env.SOURCE_DATE_EPOCH ?? '1767225600' } },
);
if (vsce.status !== 0) {
    fail(`vsce: ${vsce.stdout}`);
}
const count = readdirSync(STAGE, { recursive: true, withFileTypes: true }).filter(entry => entry.isFile()).length;
console.log(`${path.relative('.', out)}: ${(statSync(out).size / 1e6).toFixed(1)} MB, ${count} files, packed in ${((Date.now() - started) / 1000).toFixed(1)} s with ${python()}`);
