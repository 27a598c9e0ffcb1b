"""Charts as SVG text: lines over time, and histograms. Pure; colours come from the page's style."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 760, 260
LEFT, RIGHT, TOP, BOTTOM = 96, 16, 34, 44
"""As wide on the left as the longest name of a lane, so that pictures over the same time stand one above the other."""

MOST_POINTS = 1_500
TICKS = 5


@dataclass(frozen=True, slots=True)
class Line:
    """One named line; points are (x, y), x ascending."""

    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class _Frame:
    """The frame of the data in the picture: x from `x0` to `x1`, y from 0 to `y1`."""

    x0: float
    x1: float
    y1: float

    def x(self, value: float) -> float:
        return LEFT + (value - self.x0) / ((self.x1 - self.x0) or 1) * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        return HEIGHT - BOTTOM - value / (self.y1 or 1) * (HEIGHT - TOP - BOTTOM)


def line_chart(
    title: str, lines: Sequence[Line], x_label: str, y_label: str, *, over: tuple[float, float] | None = None
) -> str:
    """Return an SVG of these lines, y from zero, x `over` a range if one is given.

    A chart says so where there is nothing to draw.
    """
    points = [point for line in lines for point in line.points]
    if not points:
        return _svg(title, [f'<text x="{WIDTH / 2}" y="{HEIGHT / 2}" class="label">nothing was measured</text>'])
    first, last = over or (min(x for x, _ in points), max(x for x, _ in points))
    frame = _Frame(first, last, _top(max(y for _, y in points)))
    drawn = [
        f'<polyline class="line c{index % 4}" points="{_path(frame, line.points)}"><title>{escape(line.name)}</title>'
        "</polyline>"
        for index, line in enumerate(lines)
    ]
    legend = [
        f'<text class="legend c{index % 4}" x="{LEFT + 8 + 150 * index}" y="{TOP - 6}">{escape(line.name)}</text>'
        for index, line in enumerate(lines)
        if len(lines) > 1
    ]
    return _svg(title, [*_axes(frame, x_label, y_label), *drawn, *legend])


def histogram(title: str, values: Sequence[float], x_label: str, buckets: int = 40) -> str:
    """Return an SVG of how often each range of values occurs."""
    if not values:
        return line_chart(title, (), x_label, "count")
    low, high = min(values), max(values)
    width = (high - low) / buckets or 1.0
    counts = [0] * buckets
    for value in values:
        counts[min(buckets - 1, int((value - low) / width))] += 1
    frame = _Frame(low, low + width * buckets, _top(max(counts)))
    bars = [
        f'<rect class="bar" x="{frame.x(low + index * width):.1f}" y="{frame.y(count):.1f}" '
        f'width="{frame.x(low + width) - frame.x(low) - 1:.1f}" height="{frame.y(0) - frame.y(count):.1f}">'
        f"<title>{low + index * width:.1f} to {low + (index + 1) * width:.1f}: {count}</title></rect>"
        for index, count in enumerate(counts)
        if count
    ]
    return _svg(title, [*_axes(frame, x_label, "count"), *bars])


def _path(frame: _Frame, points: Sequence[tuple[float, float]]) -> str:
    step = max(1, len(points) // MOST_POINTS)
    return " ".join(f"{frame.x(x):.1f},{frame.y(y):.1f}" for x, y in points[::step])


def _axes(frame: _Frame, x_label: str, y_label: str) -> list[str]:
    parts = []
    for index in range(TICKS + 1):
        y = frame.y1 * index / TICKS
        at = frame.y(y)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>')
        parts.append(f'<text class="tick end" x="{LEFT - 6}" y="{at + 4:.1f}">{short(y)}</text>')
    parts += [
        f'<text class="tick mid" x="{frame.x(x):.1f}" y="{HEIGHT - BOTTOM + 16}">{short(x)}</text>'
        for x in round_steps(frame.x0, frame.x1)
    ]
    parts.append(f'<text class="label" x="{(LEFT + WIDTH) / 2}" y="{HEIGHT - 8}">{escape(x_label)}</text>')
    middle = (TOP + HEIGHT - BOTTOM) / 2
    turned = f'transform="rotate(-90 14 {middle})"'
    parts.append(f'<text class="label" x="14" y="{middle}" {turned}>{escape(y_label)}</text>')
    return parts


def _svg(title: str, parts: Sequence[str]) -> str:
    name = f'<text class="title" x="{LEFT}" y="16">{escape(title)}</text>'
    body = "".join(parts)
    return picture(title, HEIGHT, f"{name}{body}")


def picture(title: str, height: float, body: str) -> str:
    """Return the SVG of this height with a body; it may be moved sideways where the window is too narrow for it."""
    svg = f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}">{body}</svg>'
    return f"<figure>{svg}</figure>"


def round_steps(low: float, high: float) -> list[float]:
    """Return some round numbers from one to the other, the same distance apart."""
    if high <= low:
        return [low]
    step = _top((high - low) / TICKS)
    return [step * number for number in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _top(value: float) -> float:
    """Return a round number that is not smaller."""
    if value <= 0:
        return 1.0
    unit = 10.0 ** math.floor(math.log10(value))
    return next(unit * factor for factor in (1, 2, 2.5, 5, 10) if unit * factor >= value)


def short(value: float) -> str:
    """Return a number as an axis shows it: 1200000 as 1.2M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"
