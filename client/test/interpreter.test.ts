import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Answer, choose, commandOf, namesOnPath, Place, readFacts } from '../src/interpreter';

const facts = (major: number, minor: number, torch?: string): Answer => ({
    facts: { version: [major, minor, 1], executable: `/opt/py${major}${minor}`, torch },
});
const place = (origin: Place['origin'], ...commands: string[][]): Place => ({ origin, find: async () => commands });
const answers =
    (table: Record<string, Answer>) =>
    async (command: readonly string[]): Promise<Answer> =>
        table[command.join(' ')] ?? { problem: 'not found' };

test('the setting wins over the extension and PATH, and nothing else is asked', async () => {
    const asked: string[] = [];
    const choice = await choose([place('setting', ['/a']), place('python extension', ['/b']), place('PATH', ['python3'])], async command => {
        asked.push(command.join(' '));
        return facts(3, 12, '2.13.0');
    });
    assert.equal(choice.interpreter?.origin, 'setting');
    assert.equal(choice.interpreter?.torch, '2.13.0');
    assert.deepEqual(asked, ['/a']);
    assert.equal(choice.settingFailed, false);
});

test('an old Python is passed over, and the log says so', async () => {
    const choice = await choose(
        [place('setting'), place('python extension', ['/old']), place('PATH', ['python3'], ['python'])],
        answers({ '/old': facts(3, 9), python: facts(3, 10) }),
    );
    assert.equal(choice.interpreter?.command.join(' '), 'python');
    assert.deepEqual(choice.steps, [
        'setting: none',
        'python extension: /old: Python 3.9.1 is older than 3.10',
        'PATH: python3: not found',
        'PATH: python: Python 3.10.1 (/opt/py310), used',
    ]);
});

test('a setting that cannot be followed is told, and the next place serves', async () => {
    const choice = await choose([place('setting', ['/gone']), place('PATH', ['python3'])], answers({ python3: facts(4, 0) }));
    assert.equal(choice.settingFailed, true);
    assert.equal(choice.interpreter?.origin, 'PATH');
});

test('none at all', async () => {
    const choice = await choose([place('setting'), place('PATH', ['python3'])], answers({}));
    assert.equal(choice.interpreter, undefined);
    assert.equal(choice.settingFailed, false);
});

test('a neighbour that throws does not end the search', async () => {
    const broken: Place = { origin: 'python extension', find: () => Promise.reject(new Error('no environments')) };
    const choice = await choose([broken, place('PATH', ['python3'])], answers({ python3: facts(3, 11) }));
    assert.equal(choice.interpreter?.origin, 'PATH');
    assert.equal(choice.steps[0], 'python extension: no environments');
});

test('facts are read from the last marked line', () => {
    const noise = 'site hook\ngradguard-facts:{"version": [3, 8, 0]}\n';
    const answer = readFacts(`${noise}gradguard-facts:{"version": [3, 11, 7], "executable": "/py", "torch": null, "gradguard": "0.1.0"}\r\n`);
    assert.deepEqual(answer, { facts: { version: [3, 11, 7], executable: '/py', torch: undefined, gradguard: '0.1.0' } });
});

test('what is no answer becomes a problem', () => {
    for (const output of ['', 'hello', 'gradguard-facts:{', 'gradguard-facts:{"version": "3.11"}', 'gradguard-facts:{"version": [3, "x", 1]}']) {
        assert.ok('problem' in readFacts(output), output);
    }
});

test('Windows also knows the launcher', () => {
    assert.deepEqual(namesOnPath('win32').at(-1), ['py', '-3']);
    assert.deepEqual(namesOnPath('linux')[0], ['python3']);
});

test('what was found on PATH is started by where it lies, everything else as it was given', async () => {
    const asked = answers({ python3: facts(3, 12), 'conda run python': facts(3, 12), '/venv/bin/python': facts(3, 12) });
    const started = async (...places: Place[]): Promise<readonly string[]> => {
        const { interpreter } = await choose(places, asked);
        assert.ok(interpreter !== undefined);
        return commandOf(interpreter);
    };
    assert.deepEqual(await started(place('PATH', ['python3'])), ['/opt/py312']);
    assert.deepEqual(await started(place('setting', ['conda', 'run', 'python'])), ['conda', 'run', 'python']);
    assert.deepEqual(await started(place('python extension', ['/venv/bin/python'])), ['/venv/bin/python']);
});
