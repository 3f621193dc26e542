// The language servers that one workbench started, found by the extension folder in their command line.
import { readdirSync, readFileSync } from 'node:fs';

export function serverPids(home) {
    return readdirSync('/proc')
        .filter(name => /^\d+$/.test(name))
        .filter(pid => {
            try {
                const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
                return words.includes('server') && words.some(word => word.startsWith(home) && word.endsWith('launch.py'));
            } catch {
                return false; // it ended meanwhile
            }
        })
        .map(Number);
}
