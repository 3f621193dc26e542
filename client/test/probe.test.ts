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
