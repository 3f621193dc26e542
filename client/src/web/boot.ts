/** A file that the server is made of: its address, or what is in it where no address leads there. */
export type Part = string | ArrayBuffer;

export interface Boot {
    readonly wasm: Part;
    readonly library: Part;
    readonly server: Part;
    /** What only fixes need: where it cannot be had, all the rest works. */
    readonly fixes: Part;
    readonly lock: string;
    readonly logLevel: string;
}

/** `ready`: messages are answered. `fixes`: whether edits can be written. */
export type Progress = { readonly progress: 'ready' } | { readonly progress: 'failed'; readonly error: string } | { readonly progress: 'fixes'; readonly there: boolean };
