import * as path from 'node:path';
import * as vscode from 'vscode';
import { clientSettings } from './clientSettings';
import { Choice, choose, namesOnPath, Place } from './interpreter';
import { ask } from './probe';
import { activeInterpreter } from './pythonExtension';

/** Finds the Python of a folder. Answers are kept until `forget`, since each question starts a process. */
export class Interpreters {
    private known = new Map<string, Promise<Choice>>();
    private asked = new Map<string, ReturnType<typeof ask>>();

    constructor(private readonly log: vscode.LogOutputChannel) {}

    forget(): void {
        this.known.clear();
        this.asked.clear();
    }

    of(folder: vscode.Uri | undefined): Promise<Choice> {
        const key = folder?.toString() ?? '';
        let choice = this.known.get(key);
        if (choice === undefined) {
            choice = this.find(folder);
            this.known.set(key, choice);
        }
        return choice;
    }

    private async find(folder: vscode.Uri | undefined): Promise<Choice> {
        const setting: Place = {
            origin: 'setting',
            find: async () => {
                const command = clientSettings(folder).interpreter;
                return command.length > 0 ? [command] : [];
            },
        };
        const extension: Place = { origin: 'python extension', find: () => activeInterpreter(folder) };
        const onPath: Place = { origin: 'PATH', find: async () => namesOnPath(process.platform) };
        // An environment may lie inside the folder: without trust nothing of it is run.
        const places = vscode.workspace.isTrusted ? [setting, extension, onPath] : [setting, onPath];
        const choice = await choose(places, command => this.ask(command));
        this.log.info(`Python for ${folder?.fsPath ?? 'files without a folder'}${vscode.workspace.isTrusted ? '' : ' (restricted mode)'}:`);
        for (const step of choice.steps) {
            this.log.info(`  ${step}`);
        }
        return choice;
    }

    private ask(command: readonly string[]): ReturnType<typeof ask> {
        const [program] = command;
        if (program !== undefined && !vscode.workspace.isTrusted && inWorkspace(program)) {
            return Promise.resolve({ problem: 'lies in a folder that is not trusted' });
        }
        const key = JSON.stringify(command);
        let answer = this.asked.get(key);
        if (answer === undefined) {
            answer = ask(command);
            this.asked.set(key, answer);
        }
        return answer;
    }
}

function inWorkspace(program: string): boolean {
    return (vscode.workspace.workspaceFolders ?? []).some(folder => {
        const relative = path.relative(folder.uri.fsPath, path.resolve(program));
        return path.isAbsolute(program) && !relative.startsWith('..') && !path.isAbsolute(relative);
    });
}

/** The folder whose Python runs the one server: the shortest path, since nested folders belong to it. */
export function mainFolder(): vscode.Uri | undefined {
    const folders = vscode.workspace.workspaceFolders ?? [];
    return [...folders].sort((a, b) => a.uri.path.length - b.uri.path.length)[0]?.uri;
}
