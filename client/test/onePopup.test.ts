import assert from 'node:assert/strict';
import { test } from 'node:test';
import { OnePopup, unlinked } from '../src/onePopup';

test('the first message pops up, every message is logged, the chosen button acts', async () => {
    const shown: string[] = [];
    const logged: string[] = [];
    const acted: string[] = [];
    const popup = new OnePopup(
        async (message, buttons) => {
            shown.push(message);
            return buttons[1];
        },
        message => logged.push(message),
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
    const popup = new OnePopup(
        async message => void shown.push(message),
        () => undefined,
    );
    await popup.say('[repair](command:workbench.action.quit) and ![x](https://a.example)', {});
    assert.deepEqual(shown, ['[repair] (command:workbench.action.quit) and ![x] (https://a.example)']);
    assert.equal(unlinked('](]('), '] (] (');
});

test('a pop-up that is closed does nothing', async () => {
    const popup = new OnePopup(async () => undefined, () => undefined);
    await popup.say('one', { Restart: () => assert.fail('not chosen') });
});
