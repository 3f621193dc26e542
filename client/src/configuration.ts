import * as vscode from 'vscode';

/** Settings the client itself acts on; all others are the server's. A change of one of them needs a new server. */
const OF_THE_CLIENT = ['interpreter', 'importStrategy', 'path', 'args', 'logLevel'] as const;

/**
 * What the user set for a folder. Defaults are left out: the server has the same, and it tells where each of its
 * settings comes from.
 */
export function serverSettings(keys: readonly string[], folder: vscode.Uri | undefined): Record<string, unknown> {
    const config = vscode.workspace.getConfiguration('gradguard', folder ?? null);
    const settings: Record<string, unknown> = {};
    for (const key of keys) {
        const value = config.get<unknown>(key);
        if (JSON.stringify(value) !== JSON.stringify(config.inspect(key)?.defaultValue)) {
            settings[key] = value;
        }
    }
    return settings;
}

/** Keys of the manifest that the server understands. */
export function keysOfServer(manifest: unknown): readonly string[] {
    const { contributes } = manifest as { contributes: { configuration: { properties: Record<string, unknown> } } };
    const own: readonly string[] = [...OF_THE_CLIENT, 'trace.server'];
    return Object.keys(contributes.configuration.properties)
        .map(name => name.replace(/^gradguard\./, ''))
        .filter(key => !own.includes(key));
}

export function needsNewServer(change: vscode.ConfigurationChangeEvent): boolean {
    return OF_THE_CLIENT.some(key => change.affectsConfiguration(`gradguard.${key}`));
}
