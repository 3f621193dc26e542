// Imported before Pyodide, which refuses to run in a worker that is no module, as it could not load its parts there.
// Here its parts are in the bundle; and an editor starts the workers of its extensions only so.
Object.defineProperty(globalThis, 'importScripts', { value: undefined, configurable: true, writable: true });
export {};
