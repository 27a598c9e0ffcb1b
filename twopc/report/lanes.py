"""A timeline as SVG text: one lane for each kind of thing, one mark for each time that it happened. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from twopc.report.chart import LEFT, RIGHT, TOP, WIDTH, picture, round_steps, short

LANE_HEIGHT = 26
FOOT = 36
MARK = 4
MOST_MARKS = 2_000


def lanes(title: str, marks: Sequence[tuple[str, float, str]], x_label: str, *, until: float = 0.0) -> str:
    """Return an SVG of marks, each (lane, x from 0, text on it); lanes in the order in which they first come.

    It goes on `until` then, where the last mark comes earlier.
    """
    names = list(dict.fromkeys(lane for lane, _, _ in marks))
    height = TOP + LANE_HEIGHT * max(len(names), 1) + FOOT
    span = max([until, *(x for _, x, _ in marks)]) or 1.0

    def place(x: float) -> float:
        return LEFT + x / span * (WIDTH - LEFT - RIGHT)

    parts = [f'<text class="title" x="{LEFT}" y="16">{escape(title)}</text>']
    for index, name in enumerate(names):
        y = TOP + LANE_HEIGHT * index + LANE_HEIGHT / 2
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>')
        parts.append(f'<text class="tick end" x="{LEFT - 8}" y="{y + 4}">{escape(name)}</text>')
    step = max(1, len(marks) // MOST_MARKS)
    for lane, x, text in marks[::step]:
        row = names.index(lane)
        y = TOP + LANE_HEIGHT * row + LANE_HEIGHT / 2
        parts.append(
            f'<circle class="mark c{row % 4}" cx="{place(x):.1f}" cy="{y}" r="{MARK}">'
            f"<title>{short(x)} s: {escape(text)}</title></circle>"
        )
    for x in round_steps(0.0, span):
        parts.append(f'<text class="tick mid" x="{place(x):.1f}" y="{height - FOOT + 16}">{short(x)}</text>')
    parts.append(f'<text class="label" x="{(LEFT + WIDTH) / 2}" y="{height - 6}">{escape(x_label)}</text>')
    return picture(title, height, "".join(parts))
