import type { ServerState } from './languageServer';

/** What the debug information is made of. */
export interface DebugFacts {
    readonly extension: string;
    readonly editor: string;
    readonly platform: string;
    readonly trusted: boolean;
    readonly folders: readonly string[];
    readonly state: ServerState;
    /** Text that the server wrote about itself; absent when it could not be asked. */
    readonly server?: string | undefined;
    readonly problem?: string | undefined;
}

/** A page to paste into a bug report. Pure. */
export function debugInformation(facts: DebugFacts): string {
    const { state } = facts;
    const lines = [
        '# gradguard: debug information',
        '',
        `- extension: ${facts.extension}`,
        `- editor: ${facts.editor}`,
        `- platform: ${facts.platform}`,
        `- workspace: ${facts.folders.length === 0 ? 'no folder' : facts.folders.join(', ')}${facts.trusted ? '' : ' (restricted mode)'}`,
        `- server: ${state.running ? 'running' : 'not running'}, ${state.restarts} restart${state.restarts === 1 ? '' : 's'} after a crash`,
    ];
    if (state.launch !== undefined) {
        lines.push(`- command: \`${[state.launch.command, ...state.launch.args].join(' ')}\``);
    }
    lines.push('', '## How Python was found', '');
    lines.push(...(state.choice?.steps.map((step, n) => `${n + 1}. ${step}`) ?? ['not looked for']));
    lines.push('', '## What the server says', '');
    lines.push(...(facts.server === undefined ? [facts.problem ?? 'nothing'] : ['```text', facts.server, '```']));
    return `${lines.join('\n')}\n`;
}
