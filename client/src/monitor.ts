import * as vscode from 'vscode';
import { clientSettings } from './clientSettings';
import { commandOf } from './interpreter';
import { Interpreters, mainFolder } from './interpreters';
import { launch, launchGiven } from './launch';

export interface MonitorParts {
    readonly home: string;
    readonly interpreters: Interpreters;
}

/** Registers the command that runs a program, for which there must be a machine. */
export function monitorCommands(parts: MonitorParts): vscode.Disposable[] {
    const table: Readonly<Record<string, (...args: never[]) => unknown>> = {
        'gradguard.runWithMonitor': (uri?: vscode.Uri) => runWithMonitor(parts, uri),
    };
    return Object.entries(table).map(([name, run]) => vscode.commands.registerCommand(name, run));
}

/** The dialog of the Python extension where there is one, else the setting. */
async function choosePython(): Promise<void> {
    const known = await vscode.commands.getCommands(true);
    if (known.includes('python.setInterpreter')) {
        await vscode.commands.executeCommand('python.setInterpreter');
    } else {
        await vscode.commands.executeCommand('workbench.action.openSettings', 'gradguard.interpreter');
    }
}

/** Runs the script under the monitor with the Python of its folder, where its torch is. */
async function runWithMonitor(parts: MonitorParts, given: vscode.Uri | undefined): Promise<void> {
    const uri = given ?? vscode.window.activeTextEditor?.document.uri;
    if (uri?.scheme !== 'file' || !vscode.workspace.isTrusted) {
        return;
    }
    const document = vscode.workspace.textDocuments.find(each => each.uri.toString() === uri.toString());
    await document?.save();
    const folder = vscode.workspace.getWorkspaceFolder(uri);
    const settings = clientSettings(folder?.uri ?? mainFolder());
    const choice = await parts.interpreters.of(folder?.uri ?? mainFolder());
    const args = ['run', uri.fsPath];
    if (settings.path.length === 0 && choice.interpreter !== undefined && choice.interpreter.torch === undefined) {
        const chooseAnother = vscode.l10n.t('Choose Python');
        const python = choice.interpreter.executable;
        const answer = await vscode.window.showWarningMessage(vscode.l10n.t('{0} has no torch, which the monitor watches.', python), chooseAnother);
        if (answer === chooseAnother) {
            await choosePython();
        }
        return;
    }
    const started =
        settings.path.length > 0
            ? launchGiven(settings.path, args)
            : choice.interpreter === undefined
              ? undefined
              : // The script's own packages come first: gradguard's copies of others must not stand in their way.
                launch({ home: parts.home, interpreter: commandOf(choice.interpreter), importStrategy: 'fromEnvironment', args });
    if (started === undefined) {
        await vscode.commands.executeCommand('gradguard.restart'); // says what is missing
        return;
    }
    const { PYTHONSAFEPATH: _, ...env } = started.env; // the script may import its neighbours
    const task = new vscode.Task(
        { type: 'gradguard', script: uri.fsPath },
        folder ?? vscode.TaskScope.Workspace,
        vscode.l10n.t('run with monitor'),
        'gradguard',
        new vscode.ProcessExecution(started.command, [...started.args], { cwd: folder?.uri.fsPath ?? vscode.Uri.joinPath(uri, '..').fsPath, env }),
    );
    task.presentationOptions = { reveal: vscode.TaskRevealKind.Always, panel: vscode.TaskPanelKind.Dedicated, clear: true };
    await vscode.tasks.executeTask(task);
}
