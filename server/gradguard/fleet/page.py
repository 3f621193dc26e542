"""The summary of a scan as one HTML page that asks nothing of anybody: no script, no address, no font from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from gradguard import __version__
from gradguard.fleet.summary import SEVERITIES, Summary
from gradguard.fleet.trend import Found
from gradguard.ide.pages import link
from gradguard.source.printable import printable

SHOWN = 500
"""Rows of a table; the Parquet tables have all of them."""

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --error: #c62828; --warning: #b26a00; }
@media (prefers-color-scheme: dark) { :root { --error: #ff8a80; --warning: #ffb74d; } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 75rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 2.5rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .25rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
.error { color: var(--error); font-weight: 600; }
.warning { color: var(--warning); font-weight: 600; }
.figures { display: flex; flex-wrap: wrap; gap: 1.5rem; }
.figures div { min-width: 7rem; }
.figures b { display: block; font-size: 1.6rem; }
code { overflow-wrap: anywhere; }
"""

Cell = str | int | tuple[str, str]
"""Text, a number, or markup that is ready with its class."""


def render(summary: Summary) -> str:
    """The page."""
    parts = [
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>gradguard fleet</title><style>{_STYLE}</style></head><body>",
        "<h1>gradguard fleet</h1>",
        _figures(summary),
        "<h2>By rule</h2>",
        _table(
            ("rule", "", *SEVERITIES, "packages"),
            [
                (_rule(each.code, each.name), each.name, *_loud(each.counts), each.packages)
                for each in summary.rules
            ],
        ),
    ]
    if summary.trend is not None:
        trend = summary.trend
        parts += [
            "<h2>Trend</h2>",
            f"<p>Against <code>{_safe(summary.against)}</code>: {len(trend.new):,} new, {len(trend.gone):,} gone, "
            f"{trend.kept:,} kept; {len(trend.first):,} in packages that the earlier scan had not read, "
            f"{len(trend.unread):,} of it in packages that are not read now.</p>",
        ]
        for title, found in (("New", trend.new), ("Gone", trend.gone)):
            if found:
                parts += [f"<h3>{title}</h3>", _found(found)]
    parts += [
        "<h2>By package</h2>",
        _table(
            ("package", "revision", *SEVERITIES, "files", "lines", "seconds", "not read", "limits"),
            [
                (
                    each.name,
                    each.revision[:12],
                    *_loud(each.counts),
                    each.files,
                    each.lines,
                    f"{each.seconds:,.1f}",
                    each.unread,
                    each.limits,
                )
                for each in summary.packages
            ],
            numbers_from=2,
        ),
        "<h2>Not read</h2>",
        _table(("source", "path", "why"), summary.unread, numbers_from=3)
        if summary.unread
        else "<p>Nothing.</p>",
        f"<p>gradguard {__version__}</p></body></html>\n",
    ]
    return "\n".join(parts)


def _figures(summary: Summary) -> str:
    figures: list[tuple[str, int]] = [
        ("packages", len(summary.packages)),
        ("files", summary.files),
        ("with torch", summary.torch_files),
        ("lines", summary.lines),
        *zip(("errors", "warnings", "information", "hints"), summary.counts),
        ("not read", len(summary.unread)),
    ]
    cells = "".join(f"<div><b>{number:,}</b>{name}</div>" for name, number in figures)
    return f'<div class="figures">{cells}</div>'


def _rule(code: str, name: str) -> tuple[str, str]:
    return (f'<a href="{escape(link(name))}">{_safe(code)}</a>' if name else _safe(code)), ""


def _loud(counts: Sequence[int]) -> list[Cell]:
    return [
        (f"{count:,}", f"number {name}" if count else "number") for count, name in zip(counts, SEVERITIES)
    ]


def _found(found: Sequence[Found]) -> str:
    return _table(
        ("severity", "rule", "package", "place", "message"),
        [
            (
                (_safe(each.severity), each.severity),
                each.code,
                each.package,
                f"{each.path}:{each.line}",
                each.message,
            )
            for each in found
        ],
        numbers_from=5,
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[Cell]], numbers_from: int = 2) -> str:
    listed = list(rows)
    titles = "".join(
        f"<th{' class=number' if place >= numbers_from else ''}>{name}</th>"
        for place, name in enumerate(head)
    )
    lines = [
        "<tr>" + "".join(_cell(cell, place >= numbers_from) for place, cell in enumerate(row)) + "</tr>"
        for row in listed[:SHOWN]
    ]
    more = f"<p>... and {len(listed) - SHOWN:,} more, in the tables.</p>" if len(listed) > SHOWN else ""
    return f'<div class="wide"><table><tr>{titles}</tr>\n' + "\n".join(lines) + f"</table></div>{more}"


def _cell(cell: Cell, number: bool) -> str:
    if isinstance(cell, tuple):
        markup, name = cell
        return f'<td class="{name}">{markup}</td>' if name else f"<td>{markup}</td>"
    shown = f"{cell:,}" if isinstance(cell, int) else _safe(cell)
    return f'<td class="number">{shown}</td>' if number else f"<td>{shown}</td>"


def _safe(text: str) -> str:
    """Text of anybody's making as text of the page."""
    return escape(printable(text)).encode("utf-8", "backslashreplace").decode("utf-8")
