import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { test } from 'node:test';
import { ask } from '../src/probe';

test('a real Python tells its version and path', async () => {
    const answer = await ask(['python3']);
    assert.ok('facts' in answer, JSON.stringify(answer));
    assert.equal(answer.facts.version[0], 3);
    assert.ok(path.isAbsolute(answer.facts.executable));
});

test('what is not there, not a Python or empty is a problem in words', async () => {
    assert.deepEqual(await ask(['/nowhere/python3']), { problem: 'not found' });
    assert.deepEqual(await ask([]), { problem: 'is empty' });
    const folder = mkdtempSync(path.join(os.tmpdir(), 'gradguard-'));
    try {
        const fake = path.join(folder, 'python');
        writeFileSync(fake, '#!/bin/sh\necho first >&2\necho "no such module: encodings" >&2\nexit 3\n');
        chmodSync(fake, 0o755);
        assert.deepEqual(await ask([fake]), { problem: 'no such module: encodings' });
    } finally {
        rmSync(folder, { recursive: true });
    }
});

test('no module is taken from the folder that it is asked in', { skip: process.platform === 'win32' }, async () => {
    const folder = mkdtempSync(path.join(os.tmpdir(), 'gradguard-'));
    const usual = process.env['TMPDIR'];
    try {
        for (const name of ['json', 'importlib', 'email', 'zipfile', 'csv', 'sitecustomize']) {
            writeFileSync(path.join(folder, `${name}.py`), 'raise SystemExit("a stranger answers")\n');
        }
        process.env['TMPDIR'] = folder;
        assert.equal(os.tmpdir(), folder);
        const answer = await ask(['python3']);
        assert.ok('facts' in answer, JSON.stringify(answer));
    } finally {
        if (usual === undefined) {
            delete process.env['TMPDIR'];
        } else {
            process.env['TMPDIR'] = usual;
        }
        rmSync(folder, { recursive: true });
    }
});
