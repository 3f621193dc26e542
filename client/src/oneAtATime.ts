/** Runs one job at a time. Requests that come meanwhile become one further run, which sees the newest state. */
export class OneAtATime {
    private running: Promise<void> | undefined;
    private queued: Promise<void> | undefined;

    constructor(private readonly job: () => Promise<void>) {}

    /** Settles when a run that began after this call has ended. */
    request(): Promise<void> {
        if (this.running === undefined) {
            return this.begin();
        }
        this.queued ??= this.running.then(
            () => this.begin(),
            () => this.begin(),
        );
        return this.queued;
    }

    private begin(): Promise<void> {
        this.queued = undefined;
        const run = this.job();
        this.running = run;
        const clear = (): void => {
            if (this.running === run) {
                this.running = undefined;
            }
        };
        run.then(clear, clear);
        return run;
    }
}
