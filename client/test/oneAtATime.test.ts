import assert from 'node:assert/strict';
import { test } from 'node:test';
import { OneAtATime } from '../src/oneAtATime';

const tick = (): Promise<void> => new Promise(resolve => setImmediate(resolve));

test('requests during a run become one further run, which they all wait for', async () => {
    let running = 0;
    let runs = 0;
    const turn = new OneAtATime(async () => {
        running += 1;
        assert.equal(running, 1, 'two at a time');
        await tick();
        await tick();
        running -= 1;
        runs += 1;
    });
    const first = turn.request();
    await tick();
    const later = [turn.request(), turn.request(), turn.request()];
    await first;
    assert.equal(runs, 1);
    await Promise.all(later);
    assert.equal(runs, 2);
    await turn.request();
    assert.equal(runs, 3);
});

test('a run that fails does not block the next', async () => {
    let runs = 0;
    const turn = new OneAtATime(async () => {
        runs += 1;
        await tick();
        if (runs === 1) {
            throw new Error('first');
        }
    });
    const first = turn.request();
    const second = turn.request();
    await assert.rejects(first, /first/);
    await second;
    assert.equal(runs, 2);
});
