import * as vscode from 'vscode';
import type { Boot, Part, Progress } from './boot';

/** Where the files of the server are, which client/scripts/web.mjs makes. */
export type Files = vscode.Uri;

/** Starts Python in a worker. `fixes`: whether edits can be written. Throws where it does not come up. */
export async function startWorker(files: Files, logLevel: string, log: vscode.LogOutputChannel): Promise<{ worker: Worker; fixes: boolean }> {
    const [script, parts, wasm, library, server, fixes] = await Promise.all([
        read(files, 'worker.js'),
        read(files, 'parts.json'),
        read(files, 'python.wasm'),
        read(files, 'python.zip'),
        read(files, 'gradguard.zip'),
        read(files, 'fixes.zip').catch((error: unknown) => {
            log.warn(`fixes cannot be written: ${String(error)}`);
            return '';
        }),
    ]);
    const { lock } = JSON.parse(new TextDecoder().decode(parts)) as { lock: string };
    const address = URL.createObjectURL(new Blob([script], { type: 'text/javascript' }));
    const worker = new Worker(address);
    const boot: Boot = { wasm, library, server, fixes, lock, logLevel };
    let there = false;
    try {
        await new Promise<void>((resolve, reject) => {
            worker.onerror = event => reject(new Error(event.message));
            worker.onmessage = ({ data }: { data: Progress }) => {
                if (data.progress === 'ready') {
                    resolve();
                } else if (data.progress === 'failed') {
                    reject(new Error(data.error));
                } else {
                    there = data.there;
                }
            };
            worker.postMessage(boot, [wasm, library, server, fixes].filter(part => typeof part !== 'string'));
        });
    } catch (error) {
        worker.terminate();
        throw error;
    } finally {
        worker.onmessage = worker.onerror = null;
        URL.revokeObjectURL(address);
    }
    return { worker, fixes: there };
}

/** A file of the extension, which may have been installed from anywhere. */
async function read(files: Files, name: string): Promise<Exclude<Part, string>> {
    const uri = vscode.Uri.joinPath(files, name);
    if (uri.scheme === 'http' || uri.scheme === 'https') {
        const reply = await fetch(uri.toString(true));
        if (!reply.ok) {
            throw new Error(`${name}: ${reply.status}`);
        }
        return reply.arrayBuffer();
    }
    const bytes = await vscode.workspace.fs.readFile(uri);
    return bytes.slice().buffer as ArrayBuffer;
}
