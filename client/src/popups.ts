/** Pop-ups make links of `[label](command:...)`, and a message may quote a file of the workspace. */
export function unlinked(message: string): string {
    return message.replaceAll('](', '] (');
}

/** Of a kind, in a session. */
const MOST = 5;

/** Lets the first messages of a session be pop-ups, each once; the others only go to the log. */
export class Popups {
    private readonly shown = new Set<string>();

    /**
     * @param show puts up the pop-up and gives the button that was chosen.
     * @param log takes every message, shown or not.
     * @param most how many are shown in a session.
     */
    constructor(
        private readonly show: (message: string, buttons: readonly string[]) => Promise<string | undefined>,
        private readonly log: (message: string) => void,
        private readonly most: number,
    ) {}

    /** `actions`: what each button does. */
    async say(message: string, actions: Readonly<Record<string, () => unknown>>): Promise<void> {
        this.log(message);
        if (this.shown.size >= this.most || this.shown.has(message)) {
            return;
        }
        this.shown.add(message);
        const chosen = await this.show(unlinked(message), Object.keys(actions));
        if (chosen !== undefined) {
            await actions[chosen]?.();
        }
    }
}

type Show = (message: string, ...buttons: string[]) => PromiseLike<string | undefined>;

/** Those for faults and for warnings, which are counted apart. */
export function popups(
    window: { readonly showErrorMessage: Show; readonly showWarningMessage: Show },
    log: { error(message: string): void; warn(message: string): void },
): { readonly faults: Popups; readonly warnings: Popups } {
    return {
        faults: new Popups(
            async (message, buttons) => window.showErrorMessage(message, ...buttons),
            message => log.error(message),
            MOST,
        ),
        warnings: new Popups(
            async (message, buttons) => window.showWarningMessage(message, ...buttons),
            message => log.warn(message),
            MOST,
        ),
    };
}
