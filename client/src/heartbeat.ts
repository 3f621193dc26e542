/** Asks again and again whether somebody answers. Two questions in a row without an answer count: a machine may have slept. */

export interface HeartbeatOptions {
    /** Between an answer and the next question. */
    readonly pauseMs: number;
    readonly patienceMs: number;
    readonly misses: number;
}

export const DEFAULT_HEARTBEAT: HeartbeatOptions = { pauseMs: 15_000, patienceMs: 20_000, misses: 2 };

export class Heartbeat {
    private timer: NodeJS.Timeout | undefined;
    private turn = 0;

    /** @param stopped called once when no answer comes any more. An answer that is an error is one. */
    constructor(
        private readonly ask: () => Promise<unknown>,
        private readonly stopped: () => void,
        private readonly options: HeartbeatOptions = DEFAULT_HEARTBEAT,
    ) {}

    begin(): void {
        this.end();
        this.wait(this.turn, 0);
    }

    end(): void {
        this.turn += 1;
        clearTimeout(this.timer);
    }

    private wait(turn: number, missed: number): void {
        this.timer = setTimeout(() => this.question(turn, missed), this.options.pauseMs);
    }

    private question(turn: number, missed: number): void {
        let open = true;
        const answered = (): void => {
            if (open && turn === this.turn) {
                open = false;
                clearTimeout(this.timer);
                this.wait(turn, 0);
            }
        };
        this.timer = setTimeout(() => {
            if (!open || turn !== this.turn) {
                return;
            }
            open = false;
            if (missed + 1 >= this.options.misses) {
                this.end();
                this.stopped();
            } else {
                this.question(turn, missed + 1);
            }
        }, this.options.patienceMs);
        this.ask().then(answered, answered);
    }
}
