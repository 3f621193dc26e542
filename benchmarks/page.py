"""The results page: Markdown and pictures from the figures of a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import bounds, found, keystrokes, plots, reading

KEY_IN_BROWSER = 100
"""Milliseconds."""
PARSER_BUDGET = 12
"""How many times `ast.parse` a cold check may take."""


def write(figures: dict[str, Any], folder: Path) -> None:
    """Write RESULTS.md and its pictures into a folder."""
    parts = [
        "# Measurements\n",
        f"Written by `make bench` on {figures['when']}: {figures['machine']}.\n"
        "CPU seconds add up all processes; memory is that of the largest one.\n",
    ]
    for name, section in (
        ("start_up", _start_up), ("keystrokes", _keystrokes), ("latency", _latency), ("parser", _parser),
        ("libraries", _libraries), ("atlas", _atlas), ("scaling", _scaling), ("neighbours", _neighbours), ("bounds", _bounds),
        ("browser", _browser),
    ):  # fmt: skip
        if name in figures:
            parts.append(section(figures[name], folder))
    (folder / "RESULTS.md").write_text("\n".join(parts), "utf-8")


def _start_up(rows: list[dict[str, Any]], folder: Path) -> str:
    return "## Start-up\n\n" + _table(
        ("command", "wall, ms", "CPU, ms", "memory, MiB"),
        (
            (row["what"], f"{row['wall'] * 1000:.0f}", f"{row['cpu'] * 1000:.0f}", f"{row['memory']:.0f}")
            for row in rows
        ),
    )


def _browser(figures: dict[str, Any], folder: Path) -> str:
    sizes = figures["sizes"].items()
    rows = [
        ("page to its text, nothing kept", f"{figures['cold_paint']:.1f} s"),
        ("page to the first squiggle, nothing kept", f"{figures['cold']:.1f} s"),
        ("page to its text, the second time", f"{figures['warm_paint']:.1f} s"),
        ("page to the first squiggle, the second time", f"{figures['warm']:.1f} s"),
        *(
            (
                f"{each['program']}, {each['lines']} lines: key to squiggles, median and p95",
                f"{each['median']:.0f} and {each['p95']:.0f} ms{'' if each['p95'] < KEY_IN_BROWSER else ' (missed)'}",
            )
            for each in figures["typed"]
        ),
        *((f"loaded: {name}", f"{size['zipped'] / 1e6:.2f} MB compressed") for name, size in sizes),
    ]
    return (
        f"## In the browser\n\nThe playground in headless {figures['machine']}, from this machine; load average "
        f"{figures['load']:.0f} meanwhile, where {figures['cpus']} is all that the processors can do. A key until "
        f"squiggles should take less than {KEY_IN_BROWSER} ms in 95 of 100 cases.\n\n"
        + _table(("what", ""), rows)
    )


def _latency(rows: list[dict[str, Any]], folder: Path) -> str:
    if not rows:
        return "## Latency\n\nNot measured: the time was up.\n"
    return (
        "## Latency in long files\n\nWhat an editor waits for over stdio in files of many small functions, in milliseconds; "
        "`cpu` is what the server computed.\n\n" + _times(rows)
    )


def _keystrokes(figures: dict[str, Any], folder: Path) -> str:
    if not figures["rows"]:
        return "## Keystrokes in training scripts\n\nNot measured: the time was up.\n"
    return (
        "## Keystrokes in training scripts\n\nWhat an editor waits for over stdio in the training scripts of cleanrl and "
        f"learn2learn, in milliseconds: {figures['keys']:,} keystrokes in {figures['scripts']} scripts of together "
        f"{figures['lines']:,} lines, each in a server of its own; the first edit after opening is one of them. `cpu` is what "
        f"the server computed. `ast.parse` took {figures['parse_line']:.1f} µs for a line in the same run.\n\n"
        + _times(figures["rows"])
        + "\nThe scripts whose keystrokes take longest:\n\n"
        + _table(
            ("script", "median, CPU ms"),
            ((slow["script"], f"{slow['median']:.1f}") for slow in figures["slowest"]),
        )
    )


def _times(rows: list[dict[str, Any]]) -> str:
    """Median, p95 and largest of what was timed, with the budgets."""

    def budget(row: dict[str, Any]) -> str:
        median, p95 = row["budget"]
        parts = [f"{name} {value:g}" for name, value in (("median", median), ("p95", p95)) if value]
        return f"{', '.join(parts)}{'' if row['met'] else ' (missed)'}" if parts else ""

    return _table(
        ("what", "median", "p95", "largest", "budget"),
        (
            (
                row["what"].strip(),
                f"{row['median']:.1f}",
                f"{row['p95']:.1f}",
                f"{row['max']:.1f}",
                budget(row),
            )
            for row in rows
        ),
    )


def _parser(rows: list[dict[str, Any]], folder: Path) -> str:
    cells = [
        (
            row["library"],
            f"{row['files']:,}",
            f"{row['lines']:,}",
            f"{row['cpu']:.1f}" if row["finished"] else f"> {row['cpu']:.0f}",
            f"{row['parsing']:.2f}",
            ("" if row["finished"] else "> ") + f"{row['cpu'] / row['parsing']:.1f}×",
            f"{row['memory']:.0f}",
        )
        for row in rows
    ]
    if len(rows) > 1:
        cpu, parsing = (sum(row[name] for row in rows) for name in ("cpu", "parsing"))
        more = "" if all(row["finished"] for row in rows) else "> "
        files, lines = (f"{sum(row[name] for row in rows):,}" for name in ("files", "lines"))
        largest = f"{max(row['memory'] for row in rows):.0f}"
        cells.append(
            (
                "together",
                files,
                lines,
                f"{more}{cpu:.1f}",
                f"{parsing:.2f}",
                f"{more}{cpu / parsing:.1f}×",
                largest,
            )
        )
    return (
        "## Against the parser\n\nA cold check with one process, and `ast.parse` of the same files in the same run; "
        f"asked for are {PARSER_BUDGET} times.\n\n"
        + _table(
            ("library", "files", "lines", "check, CPU s", "ast.parse, CPU s", "ratio", "memory, MiB"), cells
        )
    )


def _bounds(figures: dict[str, Any], folder: Path) -> str:
    return (
        "## Programs that could grow without bound\n\nA check of each in a process of its own, start-up included; asked for "
        f"are {bounds.SECONDS:g} CPU s, where `ast.parse` takes {keystrokes.QUICK:g} µs for a line, and {bounds.MEMORY} MiB. "
        f"It took {figures['parse_line']:.1f} µs in this run.\n\n"
        + _table(
            ("program", "lines", "CPU, s", "on a quick machine, s", "memory, MiB", "cut", ""),
            (
                (
                    row["program"],
                    f"{row['lines']:,}",
                    *(f"{'' if row['finished'] else '> '}{row[name]:.2f}" for name in ("cpu", "quick")),
                    f"{row['memory']:.0f}",
                    "said" if row["cut"] else "",
                    "" if row["met"] else "missed",
                )
                for row in figures["rows"]
            ),
        )
    )


def _libraries(every: list[dict[str, Any]], folder: Path) -> str:
    findings = found.load(folder)
    rows = [row for row in every if "stopped" not in row]
    if not rows:
        return "## Released libraries\n\nNot measured: the time was up.\n"

    def cells(row: dict[str, Any]) -> list[str]:
        severities = row["severities"]
        return [
            _label(row),
            f"{row['files']:,} ({row['torch_files']:,})",
            f"{row['lines']:,}",
            f"{row['wall']:.1f}",
            f"{row['cpu']:.1f}",
            f"{row['lines'] / row['cpu']:,.0f}",
            f"{row['memory']:.0f}",
            f"{row['warm']:.1f}" if row["warm"] is not None else "stopped",
            *(str(severities.get(name, 0)) for name in ("error", "warning", "information", "hint")),
            _share(row, findings),
            str(row["limits"]),
        ]

    lines = sum(row["lines"] for row in rows)
    warnings = sum(row["severities"].get("warning", 0) for row in rows)
    errors = sum(row["severities"].get("error", 0) for row in rows)
    text = (
        "## Released libraries\n\nA cold check of every file, then one more from the cache. Of a large library only some "
        "files are checked, evenly spread, where the time of the run did not suffice for all; the table says so.\n\n"
    ) + _table(
        (
            "library", "files (with torch)", "lines", "wall, s", "CPU, s", "lines per CPU s", "memory, MiB",
            "from the cache, s", "errors", "warnings", "information", "hints", "true of those read", "limits",
        ),
        map(cells, rows),
    )  # fmt: skip
    text += (
        "\nRead were errors and warnings; what was read and why it is true or not stands in `read.toml`, "
        "all findings in `findings.tsv`.\n"
    )
    for row in every:
        if "stopped" in row:
            text += f"\n{row['library']} was stopped after {row['stopped']:.0f} s.\n"
    rate = f"one in {lines / warnings:,.0f} lines" if warnings else "none"
    text += f"\nTogether {lines:,} lines: {errors} errors; warnings: {warnings} ({rate}).\n"
    troubles = [trouble for row in rows for trouble in row["errors"]]
    if troubles:
        text += "\nNot checked, wholly or in part:\n\n" + "".join(f"- {trouble}\n" for trouble in troubles)
    codes = sorted({code for row in rows for code in row["codes"]})
    if codes:
        text += "\nFindings by rule:\n\n" + _table(
            ("library", *codes),
            ((_label(row), *(str(row["codes"].get(code, 0)) for code in codes)) for row in rows),
        )
    return text


def _atlas(figures: dict[str, Any], folder: Path) -> str:
    packages, loud = figures["packages"], figures["loud"]
    names = ("files", "torch_files", "lines", "seconds", "errors", "warnings", "information", "limits")
    together = {name: sum(row[name] for row in packages) for name in names}

    def read(label: str) -> list[bool]:
        known = reading.verdicts(label)
        places = [(file, line, code) for library, file, line, code, _ in loud if library == label]
        return [known[place] for place in places if place in known]

    verdicts = {label: read(label) for label in {row[0] for row in loud}}

    def cells(label: str, row: dict[str, Any], true: list[bool]) -> list[str]:
        return [
            label,
            f"{row['files']:,} ({row['torch_files']:,})",
            f"{row['lines']:,}",
            f"{row['seconds']:,.0f}",
            *(f"{row[name]:,}" for name in ("errors", "warnings", "information")),
            f"{sum(true)} of {len(true)}" if true else "",
            f"{row['limits']:,}",
        ]

    rows = [(f"{row['package']} {row['revision']}", row) for row in packages]
    every = [true for known in verdicts.values() for true in known]
    return (
        "## The atlas\n\nReleased packages that hold training code, scanned in one go by `gradguard fleet`: those of "
        "`corpus.py` and `atlas.txt` that the last scan came to. The seconds are what checking took on a machine that did other things besides. "
        "`atlas.parquet` counts all findings by package, rule, severity, certainty and fix; what was read of the errors and "
        "warnings stands in `read.toml`.\n\n"
        + _table(
            (
                "package", "files (with torch)", "lines", "seconds", "errors", "warnings", "information", "true of those read",
                "limits",
            ),
            [
                *(cells(label, row, verdicts.get(label, [])) for label, row in rows),
                cells("together", together, every),
            ],
        )
        + "".join(f"\nNot read: {count:,} x {why}.\n" for why, count in figures["unread"])
    )  # fmt: skip


def _label(row: dict[str, Any]) -> str:
    part = f", one file in {row['step']}" if row["step"] > 1 else ""
    return f"{row['library']}{part}"


def _share(row: dict[str, Any], findings: list[found.Finding]) -> str:
    """How many of a library's errors and warnings were read, and are true."""
    loud = [each for each in findings if each.library == row["library"] and each.severity in found.LOUD]
    read = [each.verdict for each in loud if each.verdict is not None]
    return f"{sum(read)} of {len(read)}" if read else ""


def _scaling(figures: dict[str, Any], folder: Path) -> str:
    shares, single = figures["shares"], figures["single"]
    if not shares or not single:
        return "## Time against lines\n\nNot measured: the time was up.\n"
    processes = sorted(int(key.removeprefix("wall_")) for key in shares[0] if key.startswith("wall_"))
    (folder / "scaling.svg").write_text(
        plots.lines(
            f"Files of {figures['library']}",
            "lines",
            "seconds",
            [
                (
                    f"{count} process{'es' if count > 1 else ''}",
                    [(row["lines"], row[f"wall_{count}"]) for row in shares],
                )
                for count in processes
            ],
        ),
        "utf-8",
    )
    (folder / "single.svg").write_text(
        plots.lines(
            "One file that grows",
            "lines",
            "CPU seconds",
            [("gradguard", [(row["lines"], row["cpu"]) for row in single])],
        ),
        "utf-8",
    )
    return (
        f"## Time against lines\n\nEvery eighth, fourth, second file of {figures['library']}, and all of them, "
        "as far as the time of the run sufficed.\n\n"
        + _table(
            ("files", "lines", *(f"wall with {count}, s" for count in processes), "CPU µs per line"),
            (
                (
                    str(row["files"]),
                    f"{row['lines']:,}",
                    *(f"{row[f'wall_{count}']:.1f}" for count in processes),
                    f"{row['cpu_1'] / row['lines'] * 1e6:.0f}",
                )
                for row in shares
            ),
        )
        + "\n![Time against lines](scaling.svg)\n\nOne file of models and training loops:\n\n"
        + _table(
            ("lines", "wall, s", "CPU, s", "CPU µs per line", "memory, MiB"),
            (
                (
                    f"{row['lines']:,}", f"{row['wall']:.2f}", f"{row['cpu']:.2f}",
                    f"{row['cpu'] / row['lines'] * 1e6:.0f}", f"{row['memory']:.0f}",
                )
                for row in single
            ),
        )
        + "\n![One file that grows](single.svg)\n"
    )  # fmt: skip


def _neighbours(rows: list[dict[str, Any]], folder: Path) -> str:
    text = (
        "## Neighbours\n\nThe same folders, one tool after the other, with as many processes as gradguard where a tool can "
        "use several. What took too long was stopped and has `>` before its figures. What they look for differs; ruff and "
        "ty are yardsticks.\n"
    )
    for number, library in enumerate(dict.fromkeys(row["library"] for row in rows), 1):
        here = [row for row in rows if row["library"] == library]
        ours = next(row for row in here if row["tool"] == "gradguard")
        (folder / f"neighbours{number}.svg").write_text(
            plots.bars(
                f"CPU seconds over {library}, {ours['lines']:,} lines",
                "s",
                [
                    (
                        row["tool"],
                        row["cpu"] if row["finished"] else None,
                        f"{row['cpu']:.1f}" if row["finished"] else "stopped",
                    )
                    for row in here
                ],
            ),
            "utf-8",
        )
        text += f"\n### {library}, {ours['lines']:,} lines, {ours['jobs']} processes\n\n" + _table(
            ("tool", "wall, s", "CPU, s", "against gradguard, wall", "memory, MiB", "findings", "exit"),
            (
                (
                    row["tool"],
                    f"{row['wall']:.1f}" if row["finished"] else f"> {row['wall']:.0f}",
                    f"{row['cpu']:.1f}" if row["finished"] else f"> {row['cpu']:.0f}",
                    ("" if row["finished"] else "> ") + f"{row['wall'] / ours['wall']:.2g}×",
                    f"{row['memory']:.0f}",
                    str(row["findings"]) if row["findings"] is not None else "",
                    str(row["code"]) if row["finished"] else "stopped",
                )
                for row in here
            ),
        )
        text += f"\n![CPU seconds over {library}](neighbours{number}.svg)\n"
    return text


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    align = ["---", *("---:" for _ in head[1:])]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (head, align, *rows))
