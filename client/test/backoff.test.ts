import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Backoff } from '../src/backoff';

const options = { firstDelayMs: 100, longestDelayMs: 1_000, attempts: 5, windowMs: 10_000 };

test('each delay doubles the one before up to the longest, then it gives up', () => {
    const backoff = new Backoff(options);
    const delays = [1, 2, 3, 4, 5, 6].map(now => backoff.ended(now));
    assert.deepEqual(delays, [100, 200, 400, 800, 1_000, undefined]);
});

test('ends that lie long back do not count', () => {
    const backoff = new Backoff(options);
    for (let now = 0; now < 100_000; now += 10_000) {
        assert.equal(backoff.ended(now), 100);
    }
});

test('a start that the user asked for begins anew', () => {
    const backoff = new Backoff(options);
    [1, 2, 3, 4, 5, 6].forEach(now => backoff.ended(now));
    backoff.reset();
    assert.equal(backoff.ended(7), 100);
});
