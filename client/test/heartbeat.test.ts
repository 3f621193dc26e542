import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Heartbeat } from '../src/heartbeat';

const options = { pauseMs: 1, patienceMs: 5, misses: 2 };
const later = async (ms: number): Promise<void> => new Promise(resolve => setTimeout(resolve, ms));

test('while somebody answers, also with an error, nothing happens', async () => {
    let asked = 0;
    let stopped = 0;
    const heart = new Heartbeat(
        async () => {
            asked += 1;
            if (asked % 2 === 0) {
                throw new Error('no such command');
            }
        },
        () => (stopped += 1),
        options,
    );
    heart.begin();
    while (asked < 6) {
        await later(1);
    }
    heart.end();
    const before = asked;
    await later(20);
    assert.deepEqual([stopped, asked], [0, before]);
});

test('two questions without an answer are told once', async () => {
    let asked = 0;
    let stopped = 0;
    const heart = new Heartbeat(
        () => {
            asked += 1;
            return new Promise(() => undefined);
        },
        () => (stopped += 1),
        options,
    );
    heart.begin();
    while (stopped === 0) {
        await later(1);
    }
    await later(20);
    assert.deepEqual([asked, stopped], [2, 1]);
});

test('one that was ended asks and tells nothing any more', async () => {
    let stopped = 0;
    const heart = new Heartbeat(
        () => new Promise(() => undefined),
        () => (stopped += 1),
        options,
    );
    heart.begin();
    await later(3);
    heart.end();
    await later(30);
    assert.equal(stopped, 0);
});
