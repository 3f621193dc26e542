/** The names a setting may use, as `${workspaceFolder}` and the like. */
export interface Variables {
    readonly workspaceFolder?: string | undefined;
    /** Folders of a multi-root workspace by name, for `${workspaceFolder:NAME}`. */
    readonly folders: ReadonlyMap<string, string>;
    readonly userHome: string;
    readonly cwd: string;
    readonly env: Readonly<Record<string, string | undefined>>;
}

/**
 * Replaces `${workspaceFolder}`, `${workspaceFolder:NAME}`, `${userHome}`, `${cwd}` and `${env:NAME}`, and a leading `~/`.
 * A name that is not known stays as written, so that the log shows what was meant.
 */
export function substitute(text: string, variables: Variables): string {
    const tilde = /^~(?=$|[\\/])/;
    return text.replace(tilde, () => variables.userHome).replace(/\$\{([^}]+)\}/g, (whole, name: string) => {
        const [kind, argument] = split(name);
        switch (kind) {
            case 'workspaceFolder':
                return (argument === undefined ? variables.workspaceFolder : variables.folders.get(argument)) ?? whole;
            case 'userHome':
                return variables.userHome;
            case 'cwd':
                return variables.cwd;
            case 'env':
                return argument === undefined ? whole : (variables.env[argument] ?? '');
            default:
                return whole;
        }
    });
}

function split(name: string): [string, string | undefined] {
    const colon = name.indexOf(':');
    return colon < 0 ? [name, undefined] : [name.slice(0, colon), name.slice(colon + 1)];
}
