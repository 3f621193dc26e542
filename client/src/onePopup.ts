/** Pop-ups make links of `[label](command:...)`, and a message may quote a file of the workspace. */
export function unlinked(message: string): string {
    return message.replaceAll('](', '] (');
}

/** Lets the first message of a session be a pop-up; the others only go to the log. */
export class OnePopup {
    private shown = false;

    /**
     * @param show puts up the pop-up and gives the button that was chosen.
     * @param log takes every message, shown or not.
     */
    constructor(
        private readonly show: (message: string, buttons: readonly string[]) => Promise<string | undefined>,
        private readonly log: (message: string) => void,
    ) {}

    /** `actions`: what each button does. */
    async say(message: string, actions: Readonly<Record<string, () => unknown>>): Promise<void> {
        this.log(message);
        if (this.shown) {
            return;
        }
        this.shown = true;
        const chosen = await this.show(unlinked(message), Object.keys(actions));
        if (chosen !== undefined) {
            await actions[chosen]?.();
        }
    }
}
