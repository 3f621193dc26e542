/** When to start the server again after it ended by itself. Pure: the clock comes in as a number. */

export interface BackoffOptions {
    readonly firstDelayMs: number;
    readonly longestDelayMs: number;
    /** After so many ends within `windowMs`, give up. */
    readonly attempts: number;
    readonly windowMs: number;
}

export const DEFAULT_BACKOFF: BackoffOptions = { firstDelayMs: 500, longestDelayMs: 30_000, attempts: 5, windowMs: 180_000 };

export class Backoff {
    private ends: number[] = [];

    constructor(private readonly options: BackoffOptions = DEFAULT_BACKOFF) {}

    /** Milliseconds to wait before the next start, or undefined to give up. Each delay doubles the one before. */
    ended(nowMs: number): number | undefined {
        this.ends = this.ends.filter(end => nowMs - end < this.options.windowMs);
        this.ends.push(nowMs);
        if (this.ends.length > this.options.attempts) {
            return undefined;
        }
        return Math.min(this.options.firstDelayMs * 2 ** (this.ends.length - 1), this.options.longestDelayMs);
    }

    /** The user asked for a start: what was before no longer counts. */
    reset(): void {
        this.ends = [];
    }
}
