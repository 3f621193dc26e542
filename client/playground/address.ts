// What the address tells after its `#`, which no browser sends to anybody: a text, compressed, and the settings.
//   #code=...&torch=2.13&off=GG301,GG302&on=GG120    or    #example=gan

export interface Shown {
    readonly code?: string;
    readonly example?: string;
    readonly torch: string;
    readonly off: readonly string[];
    readonly on: readonly string[];
}

export async function written(code: string, settings: Pick<Shown, 'torch' | 'off' | 'on'>): Promise<string> {
    const parts = [`code=${base64(await through(new TextEncoder().encode(code), new CompressionStream('deflate-raw')))}`];
    if (settings.torch !== 'auto') {
        parts.push(`torch=${encodeURIComponent(settings.torch)}`);
    }
    for (const key of ['off', 'on'] as const) {
        if (settings[key].length > 0) {
            parts.push(`${key}=${settings[key].map(encodeURIComponent).join(',')}`);
        }
    }
    return `#${parts.join('&')}`;
}

/** Throws where the text cannot be unpacked, as when a part of the address was lost. */
export async function read(hash: string): Promise<Shown> {
    const given = new Map(
        hash
            .replace(/^#/, '')
            .split('&')
            .map(part => [part.slice(0, part.indexOf('=')), decodeURIComponent(part.slice(part.indexOf('=') + 1))]),
    );
    const list = (key: string): string[] => (given.get(key) ?? '').split(',').filter(each => /^GG\d{3}$/.test(each));
    const code = given.get('code');
    const example = given.get('example');
    return {
        ...(code === undefined ? {} : { code: new TextDecoder().decode(await through(bytes(code), new DecompressionStream('deflate-raw'))) }),
        ...(example === undefined ? {} : { example }),
        torch: /^\d+\.\d+$/.test(given.get('torch') ?? '') ? (given.get('torch') as string) : 'auto',
        off: list('off'),
        on: list('on'),
    };
}

async function through(data: Uint8Array<ArrayBuffer>, change: CompressionStream | DecompressionStream): Promise<Uint8Array<ArrayBuffer>> {
    return new Uint8Array(await new Response(new Blob([data]).stream().pipeThrough(change)).arrayBuffer());
}

function base64(data: Uint8Array): string {
    return btoa(Array.from(data, byte => String.fromCharCode(byte)).join(''))
        .replaceAll('+', '-')
        .replaceAll('/', '_')
        .replace(/=+$/, '');
}

function bytes(text: string): Uint8Array<ArrayBuffer> {
    return Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), letter => letter.charCodeAt(0));
}
