"""How long an editor waits in real training scripts: each is opened in a server of its own and typed in, over stdio.

    python -m benchmarks.keystrokes [--spots N] [--script PART]

Each keystroke is one `didChange`; the time counts from sending it to the diagnostics for that very version. Half of the
spots are in functions and half at the top level, spread over the script and shifted from script to script, so that
together they stand everywhere. Four edits take turns: a statement, a call and a comment are written, an expression
grows; each is deleted again. After that the same spots are asked for a hover right behind a keystroke, while that is
analysed. `ast.parse` of the same texts, taken in the same run, says how fast the machine is.
"""

from __future__ import annotations

import argparse
import ast
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import corpus
from benchmarks.client import Client, spread, strokes

EDITS = {
    "a statement": "\n{name} = {name} * 1",
    "a comment": "  # why",
    "a call": "\nprint({name})",
    "an expression": " + 0",
}
"""What is typed at the end of a line, by what it is."""
IN_FUNCTION, TOP_LEVEL = "in functions", "at the top level"
BUDGET = (15, 50)
"""Median and p95 of a keystroke in milliseconds."""
HOVER_BUDGET = (None, 10)
QUICK = 6.0
"""Microseconds that `ast.parse` takes for a line of these scripts on a machine that is called quick here."""


@dataclass(frozen=True, slots=True)
class Spot:
    """The end of a statement that has a line for itself."""

    line: int
    column: int
    indent: str
    where: str
    name: str
    """A name that was bound there or before."""
    is_value: bool
    """The line ends with an expression that can grow."""


def spots(text: str) -> list[Spot]:
    """Where something can be typed, in the order of the lines."""
    lines = text.split("\n")
    found: list[Spot] = []
    name = "x"
    for where, statement in _statements(ast.parse(text).body, TOP_LEVEL):
        line = lines[statement.lineno - 1]
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            name = statement.targets[0].id
        alone = statement.lineno == statement.end_lineno and statement.end_col_offset == len(line)
        if not alone or line[: statement.col_offset].strip() or not line.isascii():
            continue
        is_value = isinstance(statement, ast.Assign)
        found.append(
            Spot(statement.lineno - 1, len(line), line[: statement.col_offset], where, name, is_value)
        )
    return found


def _statements(body: Sequence[ast.stmt], where: str) -> Iterator[tuple[str, ast.stmt]]:
    """Assignments and calls that are statements, each with where it stands; those of a class body are left out."""
    for statement in body:
        match statement:
            case ast.Assign() | ast.AugAssign() | ast.Expr(ast.Call()):
                yield where, statement
            case ast.ClassDef():
                methods = [each for each in statement.body if isinstance(each, ast.FunctionDef)]
                yield from _statements(methods, where)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from _statements(statement.body, IN_FUNCTION)
            case _:
                for part in ("body", "orelse", "finalbody"):
                    yield from _statements(getattr(statement, part, []), where)
                for handler in getattr(statement, "handlers", []):
                    yield from _statements(handler.body, where)


def chosen(every: Sequence[Spot], count: int, number: int) -> list[Spot]:
    """So many of them for the script of this number, functions and top level in turn as far as there are both."""
    groups = [[spot for spot in every if spot.where == where] for where in (IN_FUNCTION, TOP_LEVEL)]
    groups = [group for group in groups if group]
    shift = number * 0.618 % 1
    picked: list[list[Spot]] = []
    for at, group in enumerate(groups):
        share = (count + (number + at) % len(groups)) // len(groups)
        picked.append([group[int((k + shift) / share * len(group))] for k in range(share)])
    order = picked[number % len(picked) :] + picked[: number % len(picked)] if picked else []
    longest = max(map(len, order), default=0)
    return [group[k] for k in range(longest) for group in order if k < len(group)]


@dataclass(frozen=True, slots=True)
class Key:
    """One keystroke, in milliseconds."""

    script: str
    where: str
    edit: str
    first: bool
    wall: float
    cpu: float


@dataclass(slots=True)
class Measured:
    """What the scripts took."""

    scripts: int = 0
    lines: int = 0
    parsing: list[float] = field(default_factory=list)
    """Milliseconds of `ast.parse` for each script."""
    opening: list[float] = field(default_factory=list)
    keys: list[Key] = field(default_factory=list)
    hovers: list[float] = field(default_factory=list)

    @property
    def line(self) -> float:
        """Microseconds of `ast.parse` for a line."""
        return sum(self.parsing) * 1000 / max(1, self.lines)


def parse_time(texts: Sequence[str | bytes], times: int = 3) -> float:
    """CPU seconds of `ast.parse` for all of the texts, the best of some tries."""
    tries = []
    for _ in range(times):
        start = time.process_time()
        for text in texts:
            ast.parse(text)
        tries.append(time.process_time() - start)
    return min(tries)


def measure(scripts: Sequence[Path], count: int, left: Callable[[], float]) -> Measured:
    """Type in each script, until the time is up."""
    measured = Measured()
    for number, path in enumerate(scripts):
        if left() <= 0:
            break
        text = path.read_text("utf-8")
        client = Client()
        try:
            client.initialize()
            _one(client, path, text, chosen(spots(text), count, number), number, measured)
        finally:
            client.process.kill()
            client.process.wait()
        measured.scripts += 1
        measured.lines += text.count("\n")
        measured.parsing.append(parse_time([text]) * 1000)
    return measured


def _one(client: Client, path: Path, text: str, here: Sequence[Spot], number: int, into: Measured) -> None:
    uri, version = path.as_uri(), 1
    into.opening.append(client.open(uri, text) * 1000)
    names = list(EDITS)
    for at, spot in enumerate(here):
        what = names[(number + at) % len(names)]
        if what == "an expression" and not spot.is_value:
            what = "a statement"
        row, column = spot.line, spot.column
        for inserted, moves in strokes(EDITS[what].format(name=spot.name), spot.indent):
            if inserted:
                version += 1
                wall, cpu = client.edit(uri, version, (row, column, row, column), inserted)
                into.keys.append(Key(path.name, spot.where, what, version == 2, wall, cpu))
            row, column = (row + 1, moves - 1) if inserted.startswith("\n") else (row, column + moves)
        version += 1
        wall, cpu = client.edit(uri, version, (spot.line, spot.column, row, column), "")
        into.keys.append(Key(path.name, spot.where, what, False, wall, cpu))
    for spot in here:
        version += 1
        end = spot.column + 1
        client.change(uri, version, (spot.line, spot.column, spot.line, spot.column), ";")
        into.hovers.append(_hovered(client, uri, version, spot))
        version += 1
        client.edit(uri, version, (spot.line, spot.column, spot.line, end), "")


def _hovered(client: Client, uri: str, version: int, spot: Spot) -> float:
    """Milliseconds to the answer of a hover that is asked behind an edit; returns when both are answered."""
    client.number += 1
    number, start = client.number, time.perf_counter()
    position = {"line": spot.line, "character": len(spot.indent) + 1}
    params = {"textDocument": {"uri": uri}, "position": position}
    client.send({"id": number, "method": "textDocument/hover", "params": params})
    answered: float | None = None
    published = False
    while answered is None or not published:
        message = client.receive()
        if message.get("id") == number and "method" not in message:
            answered = (time.perf_counter() - start) * 1000
        elif message.get("method") == "textDocument/publishDiagnostics":
            told = message["params"]
            published = published or (told["uri"] == uri and told.get("version") == version)
    return answered


def figures(measured: Measured) -> dict[str, Any]:
    """Rows of a table, and the scripts whose keystrokes take longest."""
    rows: list[dict[str, Any]] = []

    def row(
        what: str, times: Sequence[float], budget: tuple[float | None, float | None] = (None, None)
    ) -> None:
        if not times:
            return
        median, p95, worst = spread(list(times))
        met = (budget[0] is None or median <= budget[0]) and (budget[1] is None or p95 <= budget[1])
        rows.append({"what": what, "median": median, "p95": p95, "max": worst, "budget": budget, "met": met})

    keys = measured.keys
    quick = QUICK / measured.line if measured.line else 1.0
    row("keystroke", [key.wall for key in keys], BUDGET)
    row("keystroke, cpu", [key.cpu for key in keys], BUDGET)
    row(f"keystroke, cpu, where a line is parsed in {QUICK:g} µs", [key.cpu * quick for key in keys], BUDGET)
    row("first edit after opening", [key.wall for key in keys if key.first])
    row("first edit after opening, cpu", [key.cpu for key in keys if key.first])
    for where in (IN_FUNCTION, TOP_LEVEL):
        row(f"{where}, cpu", [key.cpu for key in keys if key.where == where])
    for what in EDITS:
        row(f"{what}, cpu", [key.cpu for key in keys if key.edit == what])
    row("hover while a keystroke is analysed", measured.hovers, HOVER_BUDGET)
    row("opening to first diagnostics", measured.opening)
    row("ast.parse", measured.parsing)
    by_script: dict[str, list[float]] = {}
    for key in keys:
        by_script.setdefault(key.script, []).append(key.cpu)
    slowest = sorted(((spread(times)[0], name) for name, times in by_script.items()), reverse=True)[:8]
    return {
        "scripts": measured.scripts,
        "lines": measured.lines,
        "keys": len(keys),
        "parse_line": measured.line,
        "rows": rows,
        "slowest": [{"script": name, "median": median} for median, name in slowest],
    }


def main() -> int:
    """Measure and print; 1 when a budget is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--spots", type=int, default=4, help="spots in each script (default: %(default)s)")
    parser.add_argument("--script", default="", help="only scripts with this in their name")
    options = parser.parse_args()
    scripts = [path for path in corpus.scripts() if options.script in path.name]
    told = figures(measure(scripts, options.spots, lambda: float("inf")))
    print(f"load {os.getloadavg()[0]:.1f}, Python {sys.version.split()[0]}; milliseconds")
    print(f"{told['scripts']} scripts, {told['lines']:,} lines, {told['keys']:,} keystrokes; ast.parse takes {told['parse_line']:.1f} µs for a line")  # fmt: skip
    for row in told["rows"]:
        print(f"{row['what']:<52} {row['median']:>8.1f} {row['p95']:>8.1f} {row['max']:>8.1f} {'' if row['met'] else 'MISSED'}")  # fmt: skip
    for slow in told["slowest"]:
        print(f"  {slow['script']}: median {slow['median']:.1f}")
    return 0 if all(row["met"] for row in told["rows"]) else 1


if __name__ == "__main__":
    sys.exit(main())
