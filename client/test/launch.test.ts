import assert from 'node:assert/strict';
import * as path from 'node:path';
import { test } from 'node:test';
import { launch, launchGiven } from '../src/launch';

test('the bundled launcher runs with the interpreter, whatever words that has', () => {
    const made = launch({ home: '/ext', interpreter: ['py', '-3'], importStrategy: 'fromEnvironment', args: ['server'] });
    assert.equal(made.command, 'py');
    assert.deepEqual(made.args, ['-3', path.join('/ext', 'client', 'bundled', 'tool', 'launch.py'), 'server']);
    assert.equal(made.env['GRADGUARD_IMPORT_STRATEGY'], 'fromEnvironment');
});

test('a given gradguard gets the same arguments', () => {
    assert.deepEqual(launchGiven(['uvx', 'gradguard'], ['server', '--x']).args, ['gradguard', 'server', '--x']);
});

test('an empty command is refused', () => {
    assert.throws(() => launch({ home: '/ext', interpreter: [], importStrategy: 'useBundled', args: [] }), /empty/);
    assert.throws(() => launchGiven([], []), /empty/);
});
