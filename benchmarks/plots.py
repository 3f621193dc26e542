"""Plain pictures in SVG: bars on a logarithmic scale, and lines against a linear one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

WIDTH, LEFT, RIGHT = 720, 190, 90
COLOURS = ("#c2410c", "#1d4ed8", "#047857", "#7c3aed", "#64748b")
FONT = 'font-family="system-ui, sans-serif" font-size="13"'


def bars(
    title: str, unit: str, rows: Sequence[tuple[str, float | None, str]], ours: str = "gradguard"
) -> str:
    """Horizontal bars, one a row: name, figure (None: not finished) and what stands behind the bar."""
    figures = [value for _, value, _ in rows if value]
    low = 10 ** math.floor(math.log10(min(figures)))
    high = 10 ** math.ceil(math.log10(max(figures) * 1.001))
    room = WIDTH - LEFT - RIGHT

    def x(value: float) -> float:
        return LEFT + room * (math.log10(max(value, low)) - math.log10(low)) / (
            math.log10(high) - math.log10(low)
        )

    height = 60 + 26 * len(rows) + 30
    parts = [_open(height), _text(12, 24, title, weight="bold")]
    step = low
    while step <= high:
        parts.append(_line(x(step), 40, x(step), height - 34, "#e2e8f0"))
        parts.append(_text(x(step), height - 16, f"{step:g} {unit}", anchor="middle", colour="#64748b"))
        step *= 10
    for number, (name, value, note) in enumerate(rows):
        y = 48 + 26 * number
        parts.append(_text(LEFT - 10, y + 13, name, anchor="end"))
        end = x(value) if value else LEFT + room
        colour = COLOURS[0] if name.startswith(ours) else "#94a3b8"
        opacity = ' fill-opacity="0.35"' if value is None else ""
        parts.append(
            f'<rect x="{LEFT}" y="{y}" width="{max(end - LEFT, 1):.1f}" height="18" fill="{colour}"{opacity}/>'
        )
        parts.append(_text(end + 6, y + 13, note))
    return "\n".join([*parts, "</svg>\n"])


def lines(
    title: str, x_name: str, y_name: str, series: Sequence[tuple[str, Sequence[tuple[float, float]]]]
) -> str:
    """Points joined by lines, both axes from zero."""
    height, top, bottom, left = 340, 46, 60, 70
    points = [point for _, each in series for point in each]
    x_high, y_high = _round_up(max(x for x, _ in points)), _round_up(max(y for _, y in points))

    def at(point: tuple[float, float]) -> tuple[float, float]:
        return (
            left + (WIDTH - left - 130) * point[0] / x_high,
            height - bottom - (height - top - bottom) * point[1] / y_high,
        )

    parts = [_open(height), _text(12, 24, title, weight="bold")]
    for part in range(5):
        x, y = at((x_high * part / 4, y_high * part / 4))
        parts.append(_line(left, y, WIDTH - 130, y, "#e2e8f0"))
        parts.append(_text(left - 8, y + 4, f"{y_high * part / 4:,.4g}", anchor="end", colour="#64748b"))
        parts.append(
            _text(x, height - bottom + 18, f"{x_high * part / 4:,.6g}", anchor="middle", colour="#64748b")
        )
    parts.append(_text((left + WIDTH - 130) / 2, height - 14, x_name, anchor="middle", colour="#64748b"))
    parts.append(_text(left, top - 8, y_name, colour="#64748b"))
    for number, (name, each) in enumerate(series):
        colour = COLOURS[number % len(COLOURS)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(at, each))
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.extend(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>' for x, y in map(at, each))
        x, y = at(each[-1])
        parts.append(_text(x + 8, y + 4, name, colour=colour))
    return "\n".join([*parts, "</svg>\n"])


def _round_up(value: float) -> float:
    scale = 10 ** math.floor(math.log10(value))
    return next(scale * step for step in (1, 2, 4, 5, 8, 10) if scale * step >= value)


def _open(height: float) -> str:
    box = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {box} {FONT}>\n<rect width="100%" height="100%" fill="white"/>'


def _text(
    x: float, y: float, text: str, *, anchor: str = "start", weight: str = "normal", colour: str = "#0f172a"
) -> str:
    look = f'text-anchor="{anchor}" font-weight="{weight}" fill="{colour}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {look}>{escape(text)}</text>'


def _line(x: float, y: float, to_x: float, to_y: float, colour: str) -> str:
    return f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}" stroke="{colour}"/>'
