"""The report as one HTML page, with a picture of live saved bytes over the passes. Needs nothing from the network."""

from __future__ import annotations

import html
from pathlib import Path

from gradguard.runtime import lines
from gradguard.runtime.report import RunReport, Series, shown
from gradguard.source.printable import printable

WIDTH, HEIGHT = 760, 180
LEFT, BOTTOM, TOP = 80, 24, 10

STYLE = """
:root { color-scheme: light dark; --line: #2a6fdb; --second: #b45309; --soft: #8884; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
pre { background: #8881; padding: .5rem .8rem; overflow-x: auto; }
mark { background: #f5a62355; color: inherit; }
.error { border-left: 4px solid #c0392b; } .warning { border-left: 4px solid #d68910; }
.information { border-left: 4px solid #2a6fdb; } .hint { border-left: 4px solid #888; }
section.finding { padding: .1rem 1rem; margin: 1rem 0; }
table { border-collapse: collapse; } td, th { padding: .2rem .8rem; text-align: left; border-bottom: 1px solid var(--soft); }
svg text { font-size: 11px; fill: currentColor; }
"""


def html_report(report: RunReport, root: Path) -> str:
    """The whole page as text."""
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><title>gradguard run</title>",
        "<meta name=viewport content='width=device-width'>",
        f"<style>{STYLE}</style><h1>gradguard run</h1>",
        f"<p><code>{escape(' '.join(report.command))}</code><br>torch {escape(report.torch)}, "
        f"{report.costs.operators:,} operators watched in {report.costs.seconds:.2f} s, "
        f"{report.costs.own_seconds:.2f} s of them spent by the monitor"
        f"{', light mode' if report.costs.light else ''}</p>",
        f"<h2>Findings ({len(report.findings)})</h2>",
    ]
    if not report.findings:
        parts.append("<p>Nothing found.</p>")
    for finding in report.findings:
        parts.append(
            f"<section class='finding {finding.severity.value}'><h3>{finding.code} {escape(finding.name)} "
            f"<small>{finding.severity.value}</small></h3>"
            f"<p>{escape(finding.message)}</p>{_source(finding.path, finding.span.line, root)}"
        )
        for related in finding.related:
            parts.append(f"<p>{escape(related.message)}</p>{_source(related.path, related.span.line, root)}")
        parts.extend(f"<p><small>{escape(note)}</small></p>" for note in finding.notes)
        parts.append("</section>")
    parts.append("<h2>Graph kept per pass</h2>")
    shown_series = [s for s in report.series if len(s.nodes) > 1]
    if not shown_series:
        parts.append("<p>No place was passed more than once.</p>")
    for series in shown_series:
        parts.append(
            f"<h3>{escape(shown(series.path, root))}:{series.line} ({escape(series.what)}, {series.passes} passes)</h3>"
            f"{timeline(series)}"
        )
    if report.reads:
        parts.append("<h2>Host reads</h2><table><tr><th>line<th>source<th>times<th>steps<th>operators")
        for read in report.reads:
            parts.append(
                f"<tr><td>{escape(shown(read.path, root))}:{read.line}"
                f"<td><code>{escape(lines.file(read.path).line(read.line))}</code>"
                f"<td>{read.count}<td>{read.steps}<td>{escape(', '.join(read.ops))}"
            )
        parts.append("</table>")
    if report.limits:
        parts.append("<h2>Not seen</h2><ul>")
        parts.extend(f"<li>{escape(limit.message)}" for limit in report.limits)
        parts.append("</ul>")
    return "\n".join(parts) + "</html>\n"


def escape(text: str) -> str:
    """A text of the user's in the page."""
    return html.escape(printable(text))


def timeline(series: Series) -> str:
    """An SVG: saved bytes as an area, live nodes as a line, passes from left to right."""
    count = len(series.nodes)
    top_bytes = max(max(series.saved_bytes), 1)
    top_nodes = max(max(series.nodes), 1)
    wide = WIDTH - LEFT - 60
    tall = HEIGHT - TOP - BOTTOM

    def at(index: int, value: int, top: int) -> str:
        x = LEFT + wide * index / max(count - 1, 1)
        return f"{x:.1f},{TOP + tall * (1 - value / top):.1f}"

    size = " ".join(at(i, value, top_bytes) for i, value in enumerate(series.saved_bytes))
    nodes = " ".join(at(i, value, top_nodes) for i, value in enumerate(series.nodes))
    floor = TOP + tall
    return (
        f"<svg viewBox='0 0 {WIDTH} {HEIGHT}' role=img aria-label='saved bytes and graph nodes per pass'>"
        f"<polygon points='{LEFT},{floor} {size} {LEFT + wide},{floor}' fill='var(--line)' fill-opacity='.25' "
        f"stroke='var(--line)'/>"
        f"<polyline points='{nodes}' fill='none' stroke='var(--second)' stroke-dasharray='4 3'/>"
        f"<line x1='{LEFT}' y1='{floor}' x2='{LEFT + wide}' y2='{floor}' stroke='currentColor'/>"
        f"<text x='{LEFT - 6}' y='{TOP + 10}' text-anchor='end'>{_size(top_bytes)}</text>"
        f"<text x='{LEFT - 6}' y='{floor}' text-anchor='end'>0</text>"
        f"<text x='{LEFT + wide + 6}' y='{TOP + 10}'>{top_nodes:,}</text>"
        f"<text x='{LEFT}' y='{HEIGHT - 6}'>pass 1</text>"
        f"<text x='{LEFT + wide}' y='{HEIGHT - 6}' text-anchor='end'>pass {series.passes:,} "
        "(area: saved bytes, dashed: graph nodes)</text></svg>"
    )


def _size(value: int) -> str:
    number = float(value)
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:.3g} TB"


def _source(path: str, line: int, root: Path) -> str:
    source = lines.file(path)
    rows = []
    for number in range(max(line - 1, 1), min(line + 1, len(source.lines)) + 1):
        text = escape(source.lines[number - 1].rstrip().replace("\t", "    "))
        rows.append(f"{number:>5}  <mark>{text}</mark>" if number == line else f"{number:>5}  {text}")
    return f"<div><small>{escape(shown(path, root))}:{line}</small></div><pre>" + "\n".join(rows) + "</pre>"
