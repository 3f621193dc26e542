import * as vscode from 'vscode';

/** What the server told about itself once it ran. */
export interface Running {
    readonly version: string;
    readonly python: string;
    readonly interpreter: string;
    /** Torch release whose table is in use, when the server said so. */
    readonly torch?: string | undefined;
    /** Something the user may want to repair, such as a setting that could not be followed. */
    readonly warning?: string | undefined;
}

const SELECTOR: vscode.DocumentSelector = [{ language: 'python' }, { notebookType: 'jupyter-notebook', language: 'python' }];

/** Warnings that the entry shows. */
const MOST = 3;

/** The entry behind the `{}` of the status bar: quiet, and always true. */
export class Status implements vscode.Disposable {
    private readonly item = vscode.languages.createLanguageStatusItem('gradguard.status', SELECTOR);

    private facts: Running | undefined;
    private wrong: readonly string[] = [];

    constructor() {
        this.item.name = 'gradguard';
        this.item.command = { command: 'gradguard.showLog', title: vscode.l10n.t('Show Log') };
        this.starting();
    }

    starting(): void {
        this.facts = undefined;
        this.wrong = [];
        this.set(vscode.l10n.t('gradguard: starting'), '', vscode.LanguageStatusSeverity.Information, true);
    }

    /** What is wrong in settings; the files themselves show it at its places, too. */
    problems(found: readonly string[]): void {
        this.wrong = found;
        if (this.facts !== undefined) {
            this.running(this.facts);
        }
    }

    running(facts: Running): void {
        this.facts = facts;
        const parts = [`Python ${facts.python} (${facts.interpreter})`];
        if (facts.torch !== undefined) {
            parts.unshift(vscode.l10n.t('torch table {0}', facts.torch));
        }
        const warnings = [...(facts.warning === undefined ? [] : [facts.warning]), ...this.wrong];
        parts.unshift(...warnings.slice(0, MOST));
        const severity = warnings.length === 0 ? vscode.LanguageStatusSeverity.Information : vscode.LanguageStatusSeverity.Warning;
        this.set(`gradguard ${facts.version}`, parts.join(' · '), severity, false);
        this.item.command = { command: 'gradguard.showDebugInformation', title: vscode.l10n.t('Details') };
    }

    failed(message: string): void {
        this.facts = undefined;
        this.set(vscode.l10n.t('gradguard: not running'), message, vscode.LanguageStatusSeverity.Error, false);
        this.item.command = { command: 'gradguard.showLog', title: vscode.l10n.t('Show Log') };
    }

    off(): void {
        this.set(vscode.l10n.t('gradguard: off'), vscode.l10n.t('"gradguard.enable" is false'), vscode.LanguageStatusSeverity.Information, false);
    }

    dispose(): void {
        this.item.dispose();
    }

    private set(text: string, detail: string, severity: vscode.LanguageStatusSeverity, busy: boolean): void {
        this.item.text = text;
        this.item.detail = detail;
        this.item.severity = severity;
        this.item.busy = busy;
        this.item.accessibilityInformation = { label: detail === '' ? text : `${text}, ${detail}` };
    }
}
