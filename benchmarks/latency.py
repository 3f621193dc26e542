"""How long an editor waits: typing in training files of 300, 1,000 and 3,000 lines, over stdio.

    python -m benchmarks.latency [--keys N] [--json FILE]

Each keystroke is one `didChange`; the time counts from sending it to the diagnostics for that very version.
Typed is as editors do it: Enter brings the indentation, an opening bracket or quote brings its partner, so that
the text parses after most keys. Four spots take turns: a method that the script's `main` reaches, a function that
nobody calls, the top level, and a function's parameters; what was typed is deleted again. Times are wall time,
so other work on the machine is in them; the rows marked `cpu` are what the server's threads computed (from /proc),
which a busy machine changes less.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import sys
import time
from typing import Any

from benchmarks.client import Client, Range, Times, spread, strokes
from benchmarks.latency_corpus import training_file

SPOTS = {
    "reached": (
        "        h = self.act(self.first(h))",
        '\nscaled = torch.exp(h * self.scale[0])\nif self.training:\n    print(f"mean {scaled.mean().item()}")\n',
    ),
    "unreached": (
        "    p = log_p.exp()",
        "\nhard = p.detach().clamp(min=1e-4)\nfor row in hard:\n    row.mul_(gamma)\n",
    ),
    "top level": (
        "",
        "\nWARM = torch.randn(3, requires_grad=True)\nfor step in range(10):\n    WARM.grad = None\n",
    ),
    "parameters": ("def focal_loss{n}(logits, target, gamma=2.0", ", smooth: float = 0.1, *, mean=True"),
}
"""Where: what the line before is, and what is typed after it."""
BUDGETS = {300: (25, 50), 1000: (25, 50), 3000: (None, 120)}
"""Lines: (median, p95) in milliseconds."""


class Typist:
    """Types at the spots of a file and keeps the times of each."""

    def __init__(self, client: Client, uri: str, text: str) -> None:
        self.client, self.uri, self.version = client, uri, 1
        self.times: dict[str, Times] = {name: [] for name in SPOTS}
        lines = text.split("\n")
        half = len(lines) // 2
        self.spots: dict[str, tuple[int, int, str]] = {}
        """Line and column of the caret, and the indentation of a new line."""
        for name, (before, _) in SPOTS.items():
            first = 0 if name == "reached" else half
            if name == "parameters":
                stem, rest = before.split("{n}")
                line = next(
                    i for i, one in enumerate(lines) if i > half and one.startswith(stem) and rest in one
                )
                self.spots[name] = line, lines[line].index(rest) + len(rest), ""
                continue
            line = next(i for i, one in enumerate(lines) if i >= first and one == before)
            self.spots[name] = line, len(before), before[: len(before) - len(before.lstrip())]

    def round(self) -> None:
        """Type and delete once at each spot."""
        for name, (line, column, indent) in self.spots.items():
            row, at = line, column
            for inserted, moves in strokes(SPOTS[name][1], indent):
                if inserted:
                    self._key(name, (row, at, row, at), inserted)
                row, at = (row + 1, moves - 1) if inserted.startswith("\n") else (row, at + moves)
            self._key(name, (line, column, row, at), "")

    def _key(self, spot: str, where: Range, text: str) -> None:
        """Replace a range, wait for its diagnostics, note the milliseconds."""
        self.version += 1
        self.times[spot].append(self.client.edit(self.uri, self.version, where, text))


def typing(client: Client, uri: str, text: str, keys: int) -> dict[str, Times]:
    """Milliseconds for each keystroke, by spot."""
    typist = Typist(client, uri, text)
    while sum(map(len, typist.times.values())) < keys:
        typist.round()
    return typist.times


def questions(client: Client, uri: str, text: str, method: str, count: int = 40) -> Times:
    """Milliseconds for hovers or code actions all over a file."""
    times: Times = []
    lines = text.split("\n")
    spots = [(i, len(line) - len(line.lstrip()) + 2) for i, line in enumerate(lines) if line.strip()]
    hot = [i for i, line in enumerate(lines) if line.strip() == "h += 1"]
    chosen = [*spots[:: max(1, len(spots) // count)], *((i, 9) for i in hot)]
    for line, character in chosen:
        position = {"line": line, "character": character}
        params: dict[str, Any] = {"textDocument": {"uri": uri}}
        if method == "textDocument/hover":
            params["position"] = position
        else:
            params |= {"range": {"start": position, "end": position}, "context": {"diagnostics": []}}
        before, start = client.cpu(), time.perf_counter()
        client.request(method, params)
        times.append(((time.perf_counter() - start) * 1000, client.cpu() - before))
    return times


def main() -> int:
    """Measure and print; 1 when a budget is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--keys", type=int, default=400, help="keystrokes for each file (default: %(default)s)"
    )
    parser.add_argument("--json", type=pathlib.Path, help="also write the numbers here")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []

    def row(
        what: str, median: float, p95: float, worst: float, budget: tuple[float | None, float | None]
    ) -> None:
        met = (budget[1] is None or p95 <= budget[1]) and (budget[0] is None or median <= budget[0])
        limits = f"{budget[0] or '-':>6} {budget[1] or '-':>6}   {'ok' if met else 'MISSED'}"
        print(
            f"{what:<38} {median:>8.1f} {p95:>8.1f} {worst:>8.1f}   {limits if budget[1] else ''}", flush=True
        )
        rows.append({"what": what, "median": median, "p95": p95, "max": worst, "budget": budget, "met": met})

    print(f"load {os.getloadavg()[0]:.1f}, Python {sys.version.split()[0]}; milliseconds")
    print(f"{'':<38} {'median':>8} {'p95':>8} {'max':>8}   budget median/p95")
    ready = []
    for _ in range(5):
        client = Client()
        ready.append(client.initialize() * 1000)
        client.end()
    row("start to initialized", *spread(ready), (None, 1500))
    for lines, budget in BUDGETS.items():
        client = Client()
        client.initialize()
        text = training_file(lines)
        uri = f"file:///nowhere/train{lines}.py"
        first = client.open(uri, text) * 1000
        row(f"{text.count(chr(10)):,} lines: first diagnostics", first, first, first, (None, 3000))
        typed = typing(client, uri, text, options.keys)
        every = [each for times in typed.values() for each in times]
        name = f"{text.count(chr(10)):,} lines: keystroke"
        row(name, *spread([wall for wall, _ in every]), budget)
        row(f"{name}, cpu", *spread([cpu for _, cpu in every]), budget)
        for spot, times in typed.items():
            row(f"  {spot}, cpu", *spread([cpu for _, cpu in times]), (None, None))
        for what, method, limit in (
            ("hover", "textDocument/hover", 10),
            ("code actions", "textDocument/codeAction", 30),
        ):
            asked = questions(client, uri, text, method)
            name = f"{text.count(chr(10)):,} lines: {what}"
            row(name, *spread([wall for wall, _ in asked]), (None, limit))
            row(f"{name}, cpu", *spread([cpu for _, cpu in asked]), (None, limit))
        client.end()
    client = Client()
    client.initialize()
    for number in range(10):
        client.open(f"file:///nowhere/open{number}.py", training_file(1000, number))
    memory = client.memory()
    row("MB with ten 1,000-line files open", memory, memory, memory, (None, 150))
    client.end()
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 0 if all(each["met"] for each in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
