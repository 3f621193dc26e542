import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';

interface Media {
    readonly image?: Record<string, string>;
    readonly markdown?: string;
}

interface Manifest {
    readonly icon: string;
    readonly license: string;
    readonly engines: { readonly vscode: string };
    readonly devDependencies: Record<string, string>;
    readonly capabilities: {
        readonly virtualWorkspaces: { readonly supported: unknown };
        readonly untrustedWorkspaces: { readonly supported: unknown; readonly restrictedConfigurations: string[] };
    };
    readonly contributes: {
        readonly commands: { readonly command: string }[];
        readonly configuration: { readonly properties: Record<string, { readonly scope?: string }> };
        readonly walkthroughs: { readonly steps: { readonly description: string; readonly media: Media; readonly completionEvents: string[] }[] }[];
    };
}

const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as Manifest;
const english = JSON.parse(readFileSync('package.nls.json', 'utf8')) as Record<string, string>;
const { commands, configuration, walkthroughs } = manifest.contributes;

test('the oldest editor that may install it is the one whose interface it is written against', () => {
    assert.equal(manifest.engines.vscode, `^${manifest.devDependencies['@types/vscode']?.replace('^', '')}`);
});

test('without trust no setting that names a program or leads out of the folder is followed, and each of them has a scope', () => {
    const { restrictedConfigurations, supported } = manifest.capabilities.untrustedWorkspaces;
    assert.equal(supported, 'limited');
    assert.deepEqual(restrictedConfigurations, ['gradguard.args', 'gradguard.importStrategy', 'gradguard.interpreter', 'gradguard.path', 'gradguard.src']);
    for (const [name, described] of Object.entries(configuration.properties)) {
        assert.ok(name.startsWith('gradguard.') && described.scope !== undefined, name);
    }
    assert.equal(manifest.capabilities.virtualWorkspaces.supported, 'limited');
});

test('the settings and commands that people are told of are there', () => {
    const settings = ['enable', 'run', 'rules', 'torchVersion', 'importStrategy', 'interpreter', 'path', 'args', 'inlayHints', 'codeLens', 'trace.server'];
    assert.deepEqual(settings.filter(name => !(`gradguard.${name}` in configuration.properties)), []);
    const wanted = ['restart', 'showLog', 'showDebugInformation', 'explain', 'fixAll', 'checkWorkspace', 'runWithMonitor'];
    assert.deepEqual(commands.map(each => each.command).sort(), wanted.map(name => `gradguard.${name}`).sort());
});

test('each step of the walkthrough has its picture or page, and its links and ends name what there is', () => {
    const known = new Set(commands.map(each => each.command));
    const ours = (name: string): boolean => !name.startsWith('gradguard.') || known.has(name) || name in configuration.properties;
    for (const step of walkthroughs.flatMap(each => each.steps)) {
        const files = [...Object.values(step.media.image ?? {}), ...(step.media.markdown === undefined ? [] : [step.media.markdown])];
        assert.ok(files.length > 0);
        assert.deepEqual(files.filter(file => !existsSync(file)), []);
        const links = [...(english[step.description.replaceAll('%', '')] ?? '').matchAll(/\(command:([\w.]+)/g)].map(match => match[1] ?? '');
        const ends = step.completionEvents.map(event => event.split(':')[1] ?? '');
        assert.ok(links.length > 0);
        assert.deepEqual([...links, ...ends].filter(name => !ours(name)), []);
    }
});

test('icon, licence, changelog and the page for the shop are there', () => {
    assert.equal(manifest.license, 'MIT');
    assert.deepEqual([manifest.icon, 'LICENSE', 'CHANGELOG.md', 'client/README.md'].filter(file => !existsSync(file)), []);
});
