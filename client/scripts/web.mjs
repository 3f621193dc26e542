// Builds what runs the server in a browser, into client/dist/web: node client/scripts/web.mjs [--production]
//   worker.js       Python itself and the messages, in one script
//   python.wasm, python.zip   the interpreter and its library
//   gradguard.zip   the server and what it needs, compiled for this Python
//   fixes.zip       libcst, which only fixes need
//   parts.json      names, sizes, and what the interpreter must be told of itself
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import * as esbuild from 'esbuild';
import { loadPyodide } from 'pyodide';
import { runPython } from './python.mjs';

const OUT = 'client/dist/web';
const LIBS = 'build/web';
const PYODIDE = 'node_modules/pyodide';
/** Layers that no server in a browser has: they run programs, or are other faces. */
const LEFT_OUT = ['assistants', 'cli', 'fleet', 'report', 'runtime', 'main.py', '__main__.py'];

const production = process.argv.includes('--production');
rmSync(OUT, { recursive: true, force: true });
mkdirSync(OUT, { recursive: true });

const common = { bundle: true, platform: 'browser', target: 'es2022', minify: production, logLevel: 'warning' };
await esbuild.build({ ...common, entryPoints: ['client/src/web/extension.ts'], outfile: `${OUT}/extension.js`, format: 'cjs', external: ['vscode'] });
await esbuild.build({
    ...common,
    entryPoints: ['client/src/web/worker.ts'],
    outfile: `${OUT}/worker.js`,
    format: 'iife',
    // What Pyodide would use in Node, and never touches in a browser.
    external: ['node:*', 'ws', 'fs', 'path', 'crypto', 'child_process', 'module', 'url', 'vm', 'worker_threads'],
    define: { 'import.meta.url': '"https://localhost/"' },
});
copyFileSync(`${PYODIDE}/pyodide.asm.wasm`, `${OUT}/python.wasm`);
copyFileSync(`${PYODIDE}/python_stdlib.zip`, `${OUT}/python.zip`);

const wanted = createHash('sha256').update(readFileSync('client/scripts/libs.py')).update(readFileSync('client/bundled/requirements.txt')).digest('hex');
if (!existsSync(`${LIBS}/stamp`) || readFileSync(`${LIBS}/stamp`, 'utf8') !== wanted) {
    runPython(['client/scripts/libs.py', 'web']);
    writeFileSync(`${LIBS}/stamp`, wanted);
}
const python = await loadPyodide();
for (const [name, folder] of Object.entries({ server: 'server', libs: `${LIBS}/libs`, compiled: `${LIBS}/compiled` })) {
    python.FS.mkdirTree(`/from/${name}`);
    python.mountNodeFS(`/from/${name}`, folder);
}
python.FS.mkdirTree('/to');
python.mountNodeFS('/to', OUT);
python.globals.set('left_out', python.toPy(LEFT_OUT));
// The same sources give the same archives: order, dates and the names in tracebacks do not depend on the machine.
python.runPython(`
import os, py_compile, zipfile

def files(root):
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(each for each in folders if each != "__pycache__")
        for name in sorted(names):
            yield os.path.join(folder, name)

def pack(archive, roots):
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as out:
        for root, below in roots:
            for path in files(os.path.join(root, below)):
                name = os.path.relpath(path, root)
                parts = name.split("/")
                if parts[0] == "gradguard" and parts[1] in left_out or parts[0].endswith(".dist-info"):
                    continue
                if name.endswith(".py"):
                    compiled = "/tmp/module.pyc"
                    py_compile.compile(path, compiled, dfile=name, doraise=True, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
                    path, name = compiled, name + "c"
                with open(path, "rb") as file:
                    out.writestr(zipfile.ZipInfo(name), file.read(), zipfile.ZIP_DEFLATED, 9)

pack("/to/gradguard.zip", [("/from/server", "gradguard"), ("/from/libs", ".")])
pack("/to/fixes.zip", [("/from/compiled", "libcst")])
`);
const lock = JSON.parse(readFileSync(`${PYODIDE}/pyodide-lock.json`, 'utf8'));
const sizes = Object.fromEntries(
    ['worker.js', 'python.wasm', 'python.zip', 'gradguard.zip', 'fixes.zip'].map(name => [
        name,
        { bytes: statSync(`${OUT}/${name}`).size, zipped: gzipSync(readFileSync(`${OUT}/${name}`), { level: 9 }).length },
    ]),
);
writeFileSync(`${OUT}/parts.json`, JSON.stringify({ lock: JSON.stringify({ info: lock.info, packages: {} }), sizes }));
const total = Object.values(sizes).reduce((sum, each) => sum + each.zipped, 0);
console.log(`${OUT}: ${Object.entries(sizes).map(([name, each]) => `${name} ${(each.bytes / 1e6).toFixed(2)} MB (${(each.zipped / 1e6).toFixed(2)})`).join(', ')}; ${(total / 1e6).toFixed(1)} MB compressed`);
process.exit(0);
