// Keeps what the playground has loaded, so that it opens again without a network.
// BUILD is the digest of what the playground is made of: another build has a cache of its own, and the old one is dropped.
const CACHE = 'gradguard-BUILD';

self.addEventListener('install', () => self.skipWaiting());
self.addEventListener('activate', event =>
    event.waitUntil(
        (async () => {
            const old = (await caches.keys()).filter(name => name.startsWith('gradguard-') && name !== CACHE);
            await Promise.all(old.map(name => caches.delete(name)));
            await self.clients.claim();
        })(),
    ),
);

const ours = url => url.startsWith(self.registration.scope);

// A page tells what it has loaded before this one was there; the browser has that already.
self.addEventListener('message', event =>
    event.waitUntil(
        (async () => {
            const cache = await caches.open(CACHE);
            for (const url of new Set(event.data)) {
                if (ours(url) && !(await cache.match(url))) {
                    const reply = await fetch(url, { cache: 'force-cache' }).catch(() => undefined);
                    if (reply?.ok) {
                        await cache.put(url, reply);
                    }
                }
            }
            event.source?.postMessage('kept');
        })(),
    ),
);

// Parts of the playground come from the cache of their build; pages from the network, and from the cache where there is none.
self.addEventListener('fetch', event => {
    const { request } = event;
    if (request.method !== 'GET' || !ours(request.url)) {
        return;
    }
    const url = request.url.replace(/[?#].*/, '');
    event.respondWith(
        (async () => {
            const cache = await caches.open(CACHE);
            const kept = await cache.match(url);
            if (kept && (url.includes('/assets/playground/') || !navigator.onLine)) {
                return kept;
            }
            try {
                const reply = await fetch(request);
                if (reply.status === 200) {
                    await cache.put(url, reply.clone());
                }
                return reply;
            } catch (error) {
                if (kept) {
                    return kept;
                }
                throw error;
            }
        })(),
    );
});
