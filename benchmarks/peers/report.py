"""The report of a suite's runs, as JSON and as a table in Markdown: least, median and greatest of each figure."""

from __future__ import annotations

import json
import os
import platform
import statistics
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import psutil

from peers.measure import Run, spread
from peers.system import System

HEADINGS = (
    "case",
    "system",
    "runs",
    "k records/s, last half",
    "10th to 90th percent",
    "first to last",
    "CPU s/M, last half",
    "10th to 90th percent",
    "whole run",
    "start-up s",
    "peak RSS MB, all",
    "largest Python",
    "broker CPU s",
    "exact",
)


def machine() -> dict[str, Any]:
    """Say where this was measured."""
    return {
        "cores": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 1e9),
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
    }


def save(
    folder: Path, name: str, runs: list[Run], systems: Mapping[str, System], missing: Mapping[str, str], load: float
) -> Path:
    """Write NAME.json and NAME.md; return the path of the table."""
    folder.mkdir(parents=True, exist_ok=True)
    used = {run.system for run in runs}
    about = {
        name: {"version": each.version(), "settings": each.settings} for name, each in systems.items() if name in used
    }
    facts = {"machine": machine(), "load_before": load, "systems": about, "missing": missing}
    body = facts | {"runs": [run.to_json() for run in runs]}
    (folder / f"{name}.json").write_text(json.dumps(body, indent=1) + "\n")
    lines = [f"# {name}", "", *table(runs), "", *_notes(facts)]
    written = folder / f"{name}.md"
    written.write_text("\n".join(lines) + "\n")
    return written


def table(runs: Iterable[Run]) -> list[str]:
    """Return the lines of a table, a row for each case and system, in the order in which they were first run."""
    rows: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        rows.setdefault((run.case.label(), run.system), []).append(run)
    lines = [f"| {' | '.join(HEADINGS)} |", f"|{'---|' * len(HEADINGS)}"]
    return lines + [f"| {' | '.join(_row(label, system, mine))} |" for (label, system), mine in rows.items()]


def ratio(runs: list[Run], system: str, to: str, figure: str) -> float | None:
    """Return the median over the rounds of one system's figure divided by the other's, the same round's."""
    mine = [getattr(run, figure) for run in runs if run.system == system]
    other = [getattr(run, figure) for run in runs if run.system == to]
    pairs = [a / b for a, b in zip(mine, other, strict=False) if a and b]
    return statistics.median(pairs) if pairs else None


def _row(label: str, system: str, runs: list[Run]) -> list[str]:
    exact = sum(run.failure is None for run in runs)
    return [
        label,
        system,
        str(len(runs)),
        _cell(runs, lambda run: run.last_half, 1e-3, 0),
        _cell(runs, lambda run: run.middle, 1e-3, 0),
        _cell(runs, lambda run: run.whole, 1e-3, 0),
        _cell(runs, lambda run: run.cpu_last_half, 1, 2),
        _cell(runs, lambda run: run.cpu_middle, 1, 2),
        _cell(runs, lambda run: run.cpu_whole, 1, 2),
        _cell(runs, lambda run: run.startup_s, 1, 1),
        _cell(runs, lambda run: run.peak_rss_mb, 1, 0),
        _cell(runs, lambda run: run.largest_python_mb, 1, 0),
        _cell(runs, lambda run: run.broker_cpu_s, 1, 1),
        f"{exact}/{len(runs)}",
    ]


def _cell(runs: list[Run], figure: Callable[[Run], float | None], scale: float, digits: int) -> str:
    values = [value * scale for run in runs if (value := figure(run)) is not None and run.failure is None]
    return " / ".join(f"{value:,.{digits}f}" for value in spread(values)) if values else "-"


def _notes(facts: Mapping[str, Any]) -> list[str]:
    where = facts["machine"]
    lines = [
        f"Least / median / greatest. {where['cores']} cores, {where['memory_gb']} GB, Python {where['python']}; "
        f"load before the first run {facts['load_before']:.2f}. The method: [README](../README.md).",
        "",
    ]
    lines += [f"- {name}: {about['version']}. {about['settings']}" for name, about in facts["systems"].items()]
    return lines + [f"- {name} was left out: {why}" for name, why in facts["missing"].items()]
