import assert from 'node:assert/strict';
import { test } from 'node:test';
import { substitute } from '../src/variables';

const names = {
    workspaceFolder: '/w/main',
    folders: new Map([['models', '/w/models']]),
    userHome: '/home/u',
    cwd: '/cwd',
    env: { CONDA_PREFIX: '/conda' },
};

for (const [text, wanted] of [
    ['${workspaceFolder}/.venv/bin/python', '/w/main/.venv/bin/python'],
    ['${workspaceFolder:models}/py', '/w/models/py'],
    ['~/py', '/home/u/py'],
    ['a~/py', 'a~/py'],
    ['${userHome}${cwd}', '/home/u/cwd'],
    ['${env:CONDA_PREFIX}/bin', '/conda/bin'],
    ['${env:UNSET}/bin', '/bin'],
    ['${workspaceFolder:gone}/x', '${workspaceFolder:gone}/x'],
    ['${unknown}', '${unknown}'],
    ['plain', 'plain'],
] as const) {
    test(`${text} becomes ${wanted}`, () => assert.equal(substitute(text, names), wanted));
}

test('without a folder the name stays, so that the log shows what was meant', () => {
    assert.equal(substitute('${workspaceFolder}/x', { ...names, workspaceFolder: undefined }), '${workspaceFolder}/x');
});
