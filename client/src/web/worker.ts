// The server in a worker: Python, started once, and messages between it and whoever made the worker.
//
// The first message is a `Boot`. Every other one, in both directions, is a message of the language server protocol, as
// an object. What starting comes to is told in between as a `Progress`, which has no `jsonrpc`.
import './classic';
import type { PyodideAPI } from 'pyodide';
import { loadPyodide } from 'pyodide';
import createPyodideModule from 'pyodide/pyodide.asm.mjs';
import type { Boot, Part, Progress } from './boot';

interface Scope {
    fetch: (input: unknown) => Promise<Response>;
    postMessage: (message: unknown) => void;
    onmessage: ((event: { data: unknown }) => void) | null;
}
const scope = globalThis as unknown as Scope;
const HOME = '/gradguard';

scope.onmessage = ({ data }) => {
    const waiting: unknown[] = [];
    scope.onmessage = event => waiting.push(event.data);
    start(data as Boot).then(
        receive => {
            scope.onmessage = event => receive(event.data);
            tell({ progress: 'ready' });
            for (const message of waiting) {
                receive(message);
            }
        },
        (error: unknown) => tell({ progress: 'failed', error: error instanceof Error ? error.message : String(error) }),
    );
};

async function start(boot: Boot): Promise<(message: unknown) => void> {
    const server = bytes(boot.server);
    const fixes = bytes(boot.fixes).catch(() => undefined);
    const python = await load(boot);
    python.unpackArchive(await server, 'zip', { extractDir: HOME });
    const archive = await fixes;
    if (archive !== undefined) {
        python.unpackArchive(archive, 'zip', { extractDir: HOME });
    }
    tell({ progress: 'fixes', there: archive !== undefined });
    python.runPython(`import sys; sys.path.insert(0, ${JSON.stringify(HOME)})`);
    const begin = python.runPython('from gradguard.web.worker import start; start') as (post: unknown, level: string) => (text: string) => void;
    const receive = begin((text: string) => scope.postMessage(JSON.parse(text)), boot.logLevel);
    return message => receive(JSON.stringify(message));
}

/** Pyodide asks for its files by name, below an address; here they may be anywhere. */
async function load(boot: Boot): Promise<PyodideAPI> {
    const files: Readonly<Record<string, Part>> = { 'pyodide.asm.wasm': boot.wasm, 'python_stdlib.zip': boot.library };
    const fetched = scope.fetch;
    scope.fetch = async input => {
        const part = files[String(input).split('/').pop() ?? ''];
        if (part === undefined) {
            throw new Error(`not a part of Python: ${String(input)}`);
        }
        return typeof part === 'string' ? fetched.call(globalThis, part) : new Response(part, { headers: { 'Content-Type': 'application/wasm' } });
    };
    try {
        return await loadPyodide({
            createPyodideModule,
            indexURL: 'https://localhost/',
            lockFileContents: boot.lock,
            // Not to the page's console: what is logged is told by the protocol.
            stdout: () => undefined,
        });
    } finally {
        scope.fetch = fetched;
    }
}

async function bytes(part: Part): Promise<ArrayBuffer> {
    if (typeof part !== 'string') {
        return part;
    }
    const reply = await scope.fetch.call(globalThis, part);
    if (!reply.ok) {
        throw new Error(`${part}: ${reply.status}`);
    }
    return reply.arrayBuffer();
}

function tell(progress: Progress): void {
    scope.postMessage(progress);
}
