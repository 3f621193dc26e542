// A small extension that stands in for another one in a scenario.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Packs an extension from its manifest and the text of its program; gives the .vsix. */
export function stub(manifest, program) {
    const id = `${manifest.publisher}.${manifest.name}`;
    const folder = path.join(ROOT, 'build/editor', id);
    const vsix = `${folder}.vsix`;
    fs.rmSync(folder, { recursive: true, force: true });
    fs.mkdirSync(folder, { recursive: true });
    const whole = { version: '0.0.1', license: 'MIT', engines: { vscode: '^1.82.0' }, repository: 'https://example.invalid/stub', main: './main.js', ...manifest };
    fs.writeFileSync(path.join(folder, 'package.json'), JSON.stringify(whole));
    fs.writeFileSync(path.join(folder, '.vscodeignore'), '');
    fs.writeFileSync(path.join(folder, 'main.js'), program);
    const vsce = spawnSync(process.execPath, [path.join(ROOT, 'node_modules/@vscode/vsce/vsce'), 'package', '--no-dependencies', '--skip-license', '--out', vsix], { cwd: folder, encoding: 'utf8' });
    assert.equal(vsce.status, 0, vsce.stdout + vsce.stderr);
    return vsix;
}
