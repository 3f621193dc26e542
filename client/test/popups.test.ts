import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Popups, unlinked } from '../src/popups';

test('the first message pops up, every message is logged, the chosen button acts', async () => {
    const shown: string[] = [];
    const logged: string[] = [];
    const acted: string[] = [];
    const popup = new Popups(
        async (message, buttons) => {
            shown.push(message);
            return buttons[1];
        },
        message => logged.push(message),
        1,
    );
    const actions = { Restart: () => acted.push('restart'), Log: () => acted.push('log') };
    await popup.say('one', actions);
    await popup.say('two', actions);
    assert.deepEqual(shown, ['one']);
    assert.deepEqual(logged, ['one', 'two']);
    assert.deepEqual(acted, ['log']);
});

test('nothing that a message quotes becomes a link', async () => {
    const shown: string[] = [];
    const popup = new Popups(
        async message => void shown.push(message),
        () => undefined,
        1,
    );
    await popup.say('[repair](command:workbench.action.quit) and ![x](https://a.example)', {});
    assert.deepEqual(shown, ['[repair] (command:workbench.action.quit) and ![x] (https://a.example)']);
    assert.equal(unlinked('](]('), '] (] (');
});

test('a pop-up that is closed does nothing', async () => {
    const popup = new Popups(async () => undefined, () => undefined, 1);
    await popup.say('one', { Restart: () => assert.fail('not chosen') });
});

test('as many messages pop up as are allowed, and none twice', async () => {
    const shown: string[] = [];
    const popup = new Popups(
        async message => void shown.push(message),
        () => undefined,
        2,
    );
    for (const message of ['one', 'one', 'two', 'three']) {
        await popup.say(message, {});
    }
    assert.deepEqual(shown, ['one', 'two']);
});
