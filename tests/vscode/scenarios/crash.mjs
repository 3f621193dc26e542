// A server that dies again and again: it is started with growing pauses, then one message asks what to do.
import assert from 'node:assert/strict';
import { until } from '../hands.mjs';
import { serverPids } from '../processes.mjs';

const TEXT = 'import torch\n\nw = torch.randn(3, requires_grad=True)\ny = w.exp()\ny.mul_(2)\ny.sum().backward()\n';

export const options = { files: { 'model.py': TEXT } };

export async function run({ wb, check }) {
    const { page } = wb;
    const toast = page.locator('.notification-toast', { hasText: 'ended several times' });

    await check('after several crashes one message is shown, and no server runs', async () => {
        await wb.open('model.py');
        await until('a squiggle', async () => (await wb.squigglesUnder('y.mul_(2)')).length > 0);
        const killed = new Set();
        await until(
            'the message',
            async () => {
                for (const pid of serverPids(wb.home).filter(each => !killed.has(each))) {
                    killed.add(pid);
                    process.kill(pid, 'SIGKILL');
                }
                return toast.isVisible();
            },
            { patience: 90_000 },
        );
        assert.equal(killed.size, 6); // the first, and five that were started again
        assert.equal((await wb.popups()).length, 1);
        assert.deepEqual(serverPids(wb.home), []);
    });

    await check('its button starts the server again', async () => {
        await toast.getByRole('button', { name: 'Restart' }).click();
        await until('a server', () => serverPids(wb.home).length === 1);
        await until('a squiggle', async () => (await wb.squigglesUnder('y.mul_(2)')).length > 0);
    });

    await check('switched off, it says nothing; switched on, it is back', async () => {
        wb.change({ 'gradguard.enable': false });
        await until('no squiggle', async () => (await wb.squigglesUnder('y.mul_(2)')).length === 0);
        wb.change({ 'gradguard.enable': true });
        await until('a squiggle', async () => (await wb.squigglesUnder('y.mul_(2)')).length > 0);
    });
}
