declare module 'pyodide/pyodide.asm.mjs' {
    import type { PyodideConfig } from 'pyodide';
    const create: NonNullable<PyodideConfig['createPyodideModule']>;
    export default create;
}
