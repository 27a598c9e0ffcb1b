"""`python benchmarks/charts.py`: draws the charts of benchmarks/README.md from the figures in `results/`.

Each chart stands between two comments that name it, as a block of text; a test says when one is stale.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
README = FOLDER / "README.md"
BAR_WIDTH = 44
NAMES = {
    "bare": "bare loop",
    "flink": "Flink",
    "kafka-streams": "Kafka Streams",
    "spark": "Spark (at least once)",
    "quix": "Quix Streams",
    "pyflink": "PyFlink",
}
_PART = re.compile(r"(<!-- chart: ([a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def bars(title: str, rows: Iterable[tuple[str, float, str]]) -> str:
    """Return one bar a row: its name, its value, and the value as text."""
    rows = list(rows)
    most = max(value for _, value, _ in rows)
    drawn = (f"  {name:<22}{text:>8}  {'█' * max(1, round(value / most * BAR_WIDTH))}" for name, value, text in rows)
    return "\n".join([title, *drawn])


def _runs(suite: str, job: str, width: int = 1) -> dict[str, list[dict[str, Any]]]:
    """Return the runs of a job in a suite by system: with the keys of most cases, and this many subtasks."""
    found: dict[str, list[dict[str, Any]]] = {}
    for run in json.loads((FOLDER / "results" / f"{suite}.json").read_text())["runs"]:
        if run["case"]["job"] == job and run["case"].get("width", 1) == width:
            found.setdefault(run["system"], []).append(run)
    return found


def rates(title: str, suite: str, job: str, width: int = 1) -> str:
    """Return a chart of thousands of records a second: medians of the last half of each run, the fastest first."""
    runs = _runs(suite, job, width)
    medians = {
        name: statistics.median(run["last_half"] for run in of_system) / 1_000 for name, of_system in runs.items()
    }
    ranking = sorted(medians.items(), key=lambda item: -item[1])
    return bars(title, [(NAMES.get(name, name), rate, f"{rate:,.0f}") for name, rate in ranking])


def peers() -> str:
    return "\n\n".join(
        (
            rates("stateless (upper)", "peers", "upper"),
            rates("keyed (a running count, 1,000 keys)", "peers", "count"),
        )
    )


def python_peers() -> str:
    return "\n\n".join((rates("stateless", "peers-python", "upper"), rates("keyed", "peers-python", "count")))


def bare_loop() -> str:
    return "\n\n".join((rates("one subtask", "upper", "upper"), rates("two subtasks", "upper", "upper", 2)))


def latency() -> str:
    points = json.loads((FOLDER / "results" / "latency.json").read_text())["points"]
    rows = [
        (f"{name}, {share}", value, f"{value:,.0f}")
        for name, runs in points.items()
        for share in ("p50", "p99")
        for value in [statistics.median(run["latency_ms"][share] for run in runs)]
    ]
    return bars("milliseconds from append to visible, by checkpoint interval", rows)


def recovery() -> str:
    kills = json.loads((FOLDER / "results" / "recovery.json").read_text())
    medians = {name: statistics.median(kill[name] for kill in kills) for name in kills[0]}
    rows = [(name, seconds, f"{seconds:.2f}") for name, seconds in medians.items()]
    return bars(f"seconds, medians of {len(kills)} kills", rows)


CHARTS: dict[str, Callable[[], str]] = {
    "peers": peers,
    "python-peers": python_peers,
    "bare-loop": bare_loop,
    "latency": latency,
    "recovery": recovery,
}


def refreshed(text: str) -> str:
    """Return a page with every chart as the figures have it now."""
    return _PART.sub(lambda part: f"{part[1]}\n```text\n{CHARTS[part[2]]()}\n```\n\n{part[3]}", text)


if __name__ == "__main__":
    README.write_text(refreshed(README.read_text()))
    sys.stdout.write(f"{README.name}: {', '.join(CHARTS)}\n")
