import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';

const json = (path: string): Record<string, string> => JSON.parse(readFileSync(path, 'utf8')) as Record<string, string>;
const manifest = readFileSync('package.json', 'utf8');
const english = json('package.nls.json');
const korean = json('package.nls.ko.json');

test('every %key% of the manifest has an English and a Korean text, and every text is used', () => {
    const used = new Set([...manifest.matchAll(/"%([^%"]+)%"/g)].map(match => match[1]));
    assert.deepEqual([...used].sort(), Object.keys(english).sort());
    assert.deepEqual(Object.keys(korean).sort(), Object.keys(english).sort());
});

test('a Korean text keeps the placeholders, code words and links of the English one', () => {
    for (const [texts, translated] of [
        [english, korean],
        [Object.fromEntries(runtimeTexts().map(text => [text, text])), json('client/l10n/bundle.l10n.ko.json')],
    ] as const) {
        for (const [key, text] of Object.entries(texts)) {
            for (const [part] of text.matchAll(/\{\d\}|\(command:[^)]*\)|`[^`]*`/g)) {
                assert.ok(translated[key]?.includes(part), `${key}: ${part} is lost`);
            }
        }
    }
});

test('every text of the program has a Korean one, and every Korean one is used', () => {
    assert.deepEqual(Object.keys(json('client/l10n/bundle.l10n.ko.json')).sort(), runtimeTexts().sort());
});

test('every command of the manifest is registered, and the other way round', () => {
    const { contributes } = JSON.parse(manifest) as { contributes: { commands: { command: string }[] } };
    const source = ['commands', 'monitor'].map(name => readFileSync(`client/src/${name}.ts`, 'utf8')).join('');
    const registered = [...source.matchAll(/^ {8}'(gradguard\.\w+)':/gm)].map(match => match[1]);
    assert.deepEqual(registered.sort(), contributes.commands.map(each => each.command).sort());
});

function runtimeTexts(): string[] {
    const found = new Set<string>();
    const names = readdirSync('client/src', { recursive: true, encoding: 'utf8' }).filter(name => name.endsWith('.ts'));
    for (const name of names) {
        const source = readFileSync(`client/src/${name}`, 'utf8');
        for (const match of source.matchAll(/l10n\.t\(\s*'((?:[^'\\]|\\.)*)'/g)) {
            found.add(match[1] ?? '');
        }
    }
    return [...found];
}
