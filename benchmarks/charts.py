"""`python benchmarks/charts.py`: draws the charts of benchmarks/README.md, as SVG, from the figures in `results/`.

On the page each stands between two comments that name it, with its figures in words for those who can't see it; a test
says when one is stale.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).parent
README = FOLDER / "README.md"
CHARTS_FOLDER = FOLDER / "charts"
WIDTH, BARS_LEFT, BARS_RIGHT = 720, 200, 640
TITLE_HEIGHT, BAR_HEIGHT, BAR_GAP = 34, 16, 6
OWN = "twopc"
STYLE = (
    "text { font: 13px sans-serif; fill: #24292f } .title { font-weight: 600 } .end { text-anchor: end } "
    "rect { fill: #9aa4b2 } .own { fill: #2f6fde } "
    "@media (prefers-color-scheme: dark) { text { fill: #d5dbe3 } rect { fill: #66707c } .own { fill: #6ea0ff } }"
)
NAMES = {
    "bare": "bare loop",
    "c": "C on librdkafka",
    "flink": "Flink",
    "kafka-streams": "Kafka Streams",
    "spark": "Spark (at least once)",
    "quix": "Quix Streams",
    "pyflink": "PyFlink",
}
_PART = re.compile(r"(<!-- chart: ([a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


class Bar(NamedTuple):
    """A named value, and how it is written."""

    name: str
    value: float
    text: str


class Bars(NamedTuple):
    """Bars below a title, to one scale."""

    title: str
    bars: Sequence[Bar]

    def in_words(self) -> str:
        return f"{self.title}: " + ", ".join(f"{bar.name} {bar.text}" for bar in self.bars)

    def height(self) -> int:
        return TITLE_HEIGHT + len(self.bars) * (BAR_HEIGHT + BAR_GAP)

    def drawn(self, top: int) -> list[str]:
        """Return the elements of SVG, from this height down."""
        most = max(bar.value for bar in self.bars)
        parts = [f'<text class="title" x="0" y="{top + 20}">{escape(self.title)}</text>']
        for index, bar in enumerate(self.bars):
            y = top + TITLE_HEIGHT + index * (BAR_HEIGHT + BAR_GAP)
            width = max(1, round(bar.value / most * (BARS_RIGHT - BARS_LEFT)))
            own = ' class="own"' if bar.name == OWN else ""
            parts += [
                f'<text class="end" x="{BARS_LEFT - 8}" y="{y + 13}">{escape(bar.name)}</text>',
                f'<rect{own} x="{BARS_LEFT}" y="{y}" width="{width}" height="{BAR_HEIGHT}"/>',
                f'<text x="{BARS_LEFT + width + 8}" y="{y + 13}">{escape(bar.text)}</text>',
            ]
        return parts


Chart = Sequence[Bars]


def svg(chart: Chart) -> str:
    """Return a picture with these bars, one below the other."""
    parts: list[str] = []
    height = 0
    for bars in chart:
        parts += bars.drawn(height)
        height += bars.height()
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}">'
    )
    return "\n".join([opening, f"<style>{STYLE}</style>", *parts, "</svg>", ""])


def _runs(suite: str, job: str, width: int = 1) -> dict[str, list[dict[str, Any]]]:
    """Return the runs of a job in a suite by system, but those that failed: with the keys of most, so many subtasks."""
    found: dict[str, list[dict[str, Any]]] = {}
    for run in json.loads((FOLDER / "results" / f"{suite}.json").read_text())["runs"]:
        if run["case"]["job"] == job and run["case"].get("width", 1) == width and run["failure"] is None:
            found.setdefault(run["system"], []).append(run)
    return found


def rates(title: str, suite: str, job: str, width: int = 1) -> Bars:
    """Return thousands of records a second: medians of the last half of each run, the fastest first."""
    runs = _runs(suite, job, width)
    medians = {
        name: statistics.median(run["last_half"] for run in of_system) / 1_000 for name, of_system in runs.items()
    }
    ranking = sorted(medians.items(), key=lambda item: -item[1])
    return Bars(title, [Bar(NAMES.get(name, name), rate, f"{rate:,.0f}") for name, rate in ranking])


def peers() -> Chart:
    return (
        rates("stateless (upper)", "peers", "upper"),
        rates("keyed (a running count, 1,000 keys)", "peers", "count"),
    )


def python_peers() -> Chart:
    return rates("stateless", "peers-python", "upper"), rates("keyed", "peers-python", "count")


def operators() -> Chart:
    return (
        rates("key_by and count", "operators", "rekeyed_count"),
        rates("windowed count", "operators", "windowed_count"),
        rates("table join", "operators", "table_join"),
        rates("dead letters, 1 in 1,000", "operators", "dead_letters"),
        rates("join of two streams", "interval-join", "interval_join"),
    )


def bare_loop() -> Chart:
    return rates("one subtask", "upper", "upper"), rates("two subtasks", "upper", "upper", 2)


def latency() -> Chart:
    points = json.loads((FOLDER / "results" / "latency.json").read_text())["points"]
    rows = [
        Bar(f"{name}, {share}", value, f"{value:,.0f}")
        for name, runs in points.items()
        for share in ("p50", "p99")
        for value in [statistics.median(run["latency_ms"][share] for run in runs)]
    ]
    return [Bars("milliseconds from append to visible, by checkpoint interval", rows)]


def recovery() -> Chart:
    kills = json.loads((FOLDER / "results" / "recovery.json").read_text())
    medians = {name: statistics.median(kill[name] for kill in kills) for name in kills[0]}
    rows = [Bar(name, seconds, f"{seconds:.2f}") for name, seconds in medians.items()]
    return [Bars(f"seconds, medians of {len(kills)} kills", rows)]


CHARTS: dict[str, Callable[[], Chart]] = {
    "peers": peers,
    "python-peers": python_peers,
    "operators": operators,
    "bare-loop": bare_loop,
    "latency": latency,
    "recovery": recovery,
}


def refreshed(text: str) -> str:
    """Return a page with every chart as the figures have it now."""

    def shown(part: re.Match[str]) -> str:
        words = "; ".join(bars.in_words() for bars in CHARTS[part[2]]())
        return f"{part[1]}\n![{words}](charts/{part[2]}.svg)\n\n{part[3]}"

    return _PART.sub(shown, text)


if __name__ == "__main__":
    for chart_name, chart in CHARTS.items():
        (CHARTS_FOLDER / f"{chart_name}.svg").write_text(svg(chart()))
    README.write_text(refreshed(README.read_text()))
    sys.stdout.write(f"{README.name}: {', '.join(CHARTS)}\n")
