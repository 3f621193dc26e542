/** Which Python runs the server, and how that was decided. Pure: the world comes in as functions. */

/** Oldest Python the server runs on. */
export const MINIMUM: readonly [number, number] = [3, 10];

export type Origin = 'setting' | 'python extension' | 'PATH';

/** One place to look; `find` may give several commands to try, best first. */
export interface Place {
    readonly origin: Origin;
    find(): Promise<readonly (readonly string[])[]>;
}

/** What a Python said about itself. */
export interface Facts {
    readonly version: readonly [number, number, number];
    readonly executable: string;
    /** Version of torch installed beside it, where there is one. */
    readonly torch?: string | undefined;
    /** Version of gradguard installed beside it, where there is one. */
    readonly gradguard?: string | undefined;
}

export type Answer = { readonly facts: Facts } | { readonly problem: string };

export interface Interpreter extends Facts {
    readonly command: readonly string[];
    readonly origin: Origin;
}

export interface Choice {
    readonly interpreter?: Interpreter | undefined;
    /** The user's setting names a Python that cannot be used. */
    readonly settingFailed: boolean;
    /** What was tried, one line a step, for the log and the debug information. */
    readonly steps: readonly string[];
}

/** Takes the first Python that answers and is new enough, in the order of `places`. */
export async function choose(places: readonly Place[], ask: (command: readonly string[]) => Promise<Answer>): Promise<Choice> {
    const steps: string[] = [];
    let settingFailed = false;
    for (const place of places) {
        const commands = await found(place, steps);
        for (const command of commands) {
            const shown = `${place.origin}: ${command.join(' ')}`;
            const answer = await ask(command);
            if ('problem' in answer) {
                steps.push(`${shown}: ${answer.problem}`);
                continue;
            }
            const { version } = answer.facts;
            if (older(version, MINIMUM)) {
                steps.push(`${shown}: Python ${version.join('.')} is older than ${MINIMUM.join('.')}`);
                continue;
            }
            steps.push(`${shown}: Python ${version.join('.')} (${answer.facts.executable}), used`);
            return { interpreter: { ...answer.facts, command, origin: place.origin }, settingFailed, steps };
        }
        settingFailed ||= place.origin === 'setting' && commands.length > 0;
    }
    return { settingFailed, steps };
}

async function found(place: Place, steps: string[]): Promise<readonly (readonly string[])[]> {
    try {
        const commands = await place.find();
        if (commands.length === 0) {
            steps.push(`${place.origin}: none`);
        }
        return commands;
    } catch (error) {
        steps.push(`${place.origin}: ${error instanceof Error ? error.message : String(error)}`);
        return [];
    }
}

function older(version: readonly [number, number, number], least: readonly [number, number]): boolean {
    return version[0] < least[0] || (version[0] === least[0] && version[1] < least[1]);
}

/**
 * How a Python is started that has answered. Windows looks for a bare name in the current folder first, and the server
 * starts in the folder that is open: what was found on PATH is started by where it lies.
 */
export function commandOf(interpreter: Interpreter): readonly string[] {
    return interpreter.origin === 'PATH' && interpreter.executable !== '' ? [interpreter.executable] : interpreter.command;
}

/** Names under which a Python may stand on PATH. */
export function namesOnPath(platform: NodeJS.Platform): readonly (readonly string[])[] {
    return platform === 'win32' ? [['python3'], ['python'], ['py', '-3']] : [['python3'], ['python']];
}

const MARK = 'gradguard-facts:';

/** A program for `python -c`. Its text is the last line, since site hooks may print before it. */
export const QUESTION = [
    'import sys',
    'sys.path = [p for p in sys.path if p]', // the current folder must not answer for a module
    'import json',
    'def of(name):',
    '    try:',
    '        from importlib.metadata import version',
    '        return version(name)',
    '    except Exception:',
    '        return None',
    `print("${MARK}" + json.dumps({"version": list(sys.version_info[:3]), "executable": sys.executable, "torch": of("torch"), "gradguard": of("gradguard")}))`,
].join('\n');

/** Reads what `QUESTION` printed. */
export function readFacts(output: string): Answer {
    const line = output.split(/\r?\n/).reverse().find(text => text.startsWith(MARK));
    if (line === undefined) {
        return { problem: 'is not a Python that answers' };
    }
    try {
        const value = JSON.parse(line.slice(MARK.length)) as Record<string, unknown>;
        const version = value['version'];
        if (!Array.isArray(version) || version.length !== 3 || !version.every(part => typeof part === 'number')) {
            return { problem: 'told no version' };
        }
        const [major, minor, micro] = version as [number, number, number];
        return {
            facts: {
                version: [major, minor, micro],
                executable: textOf(value['executable']) ?? '',
                torch: textOf(value['torch']),
                gradguard: textOf(value['gradguard']),
            },
        };
    } catch (error) {
        return { problem: `gave an answer that cannot be read (${String(error)})` };
    }
}

function textOf(value: unknown): string | undefined {
    return typeof value === 'string' && value !== '' ? value : undefined;
}
