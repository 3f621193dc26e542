// Fills the table of operations and filters it while one types.
const data = source =>
    new Promise((resolve, reject) => {
        // A script and not a fetch, which browsers refuse for pages opened as files.
        const script = document.createElement('script');
        script.src = source;
        script.onload = () => resolve(globalThis.gradguardOps);
        script.onerror = () => reject(new Error(`cannot load ${source}`));
        document.head.append(script);
    });

const MOST = 200; // rows drawn at once

document$.subscribe(async () => {
    const place = document.getElementById('ops');
    if (!place) return;
    const input = document.getElementById('ops-search');
    const count = document.getElementById('ops-count');
    const rows = await data(place.dataset.source);
    const escape = text => text.replace(/[&<>]/g, c => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;' })[c]).replace(/`([^`]+)`/g, '<code>$1</code>');
    const show = () => {
        const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
        const found = rows.filter(row => words.every(word => row[0].toLowerCase().includes(word) || row[1].toLowerCase().includes(word)));
        count.textContent = found.length > MOST ? `${found.length} / ${rows.length} (1-${MOST})` : `${found.length} / ${rows.length}`;
        place.innerHTML = found
            .slice(0, MOST)
            .map(([name, ...cells]) => {
                // The last of a row is a program that shows what the operation saves, as the address of the playground holds it.
                const program = cells.pop();
                const link = program === '' ? '' : ` <a class="gg-try" href="playground.html#code=${program}">${place.dataset.try}</a>`;
                return `<tr><td><code>${escape(name)}</code>${link}</td>${cells.map(cell => `<td>${escape(cell)}</td>`).join('')}</tr>`;
            })
            .join('');
        const url = new URL(location.href);
        url.hash = input.value ? `q=${encodeURIComponent(input.value)}` : '';
        history.replaceState(null, '', url);
    };
    if (location.hash.startsWith('#q=')) input.value = decodeURIComponent(location.hash.slice(3));
    input.addEventListener('input', show);
    show();
});
