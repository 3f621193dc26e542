// Bundles the extension into one file: node client/scripts/bundle.mjs [--watch] [--production]
import * as esbuild from 'esbuild';

const production = process.argv.includes('--production');
const options = {
    entryPoints: ['client/src/extension.ts'],
    outfile: 'client/dist/extension.js',
    bundle: true,
    external: ['vscode'],
    format: 'cjs',
    platform: 'node',
    target: 'node18', // of the oldest VS Code in engines
    minify: production,
    sourcemap: production ? false : 'linked',
    logLevel: 'info',
};
if (process.argv.includes('--watch')) {
    await (await esbuild.context(options)).watch();
} else {
    await esbuild.build(options);
}
