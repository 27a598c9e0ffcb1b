"""The figures of a run are worked out from append times; nothing of what a run has started is left."""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path

import psutil
import pytest
from peers.case import Case
from peers.fetch import classes
from peers.measure import Run, figures_of, started
from peers.report import ratio, table
from peers.system import Launch, Missing

from twopc.bench.usage import Usage

EVEN = Counter({1_000 * second: 100 for second in range(1, 11)})
"""A hundred records each second, from 1 to 10."""
BUSY = [Usage(at / 2, at / 2 * 0.5, 0, 0) for at in range(25)]
"""Half a core, sampled twice a second."""


def run_of(system: str, rate: float, failure: str | None = None) -> Run:
    return Run(system=system, case=Case(), last_half=rate, failure=failure)


def test_the_last_half_leaves_out_a_slow_start() -> None:
    slow_start = Counter({0: 500} | {100_000 + each: 1 for each in range(500)})
    figures = figures_of(slow_start, [], 1_000, began=0.0)
    assert figures["last_half"] == pytest.approx(500 / 100.5, rel=0.01)


def test_rates_are_of_input_records_where_the_output_has_fewer() -> None:
    assert figures_of(EVEN, [], 2_000, 0.0)["whole"] == pytest.approx(2 * 1_000 / 9)


def test_cpu_is_that_of_the_same_part_of_the_run() -> None:
    # From second 5, when half of the output was there, to second 10.
    assert figures_of(EVEN, BUSY, 1_000, 0.0)["cpu_last_half"] == pytest.approx(5 * 0.5 / 500 * 1e6)


def test_start_up_is_until_the_first_record() -> None:
    assert figures_of(EVEN, [], 1_000, began=-2.0)["startup_s"] == pytest.approx(3.0)


def test_no_output_has_no_figures() -> None:
    assert figures_of(Counter(), [], 1_000, 0.0) == {}


def test_two_systems_are_compared_round_by_round() -> None:
    rounds = [run_of("a", 100), run_of("b", 50), run_of("a", 10), run_of("b", 10), run_of("a", 30), run_of("b", 10)]
    assert ratio(rounds, "a", "b", "last_half") == 2.0


def test_a_run_that_is_not_exact_has_no_figures_in_the_table() -> None:
    (row,) = table([run_of("a", 5_000), run_of("a", 1_000, "lost one")])[2:]
    assert "| 5 / 5 / 5 |" in row
    assert row.endswith("| 1/2 |")


def test_nothing_of_a_process_tree_outlives_its_run(tmp_path: Path) -> None:
    child = "import time; time.sleep(60)"
    parent = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {child!r}]).wait()"
    with started(Launch([sys.executable, "-c", parent]), tmp_path / "log") as process:
        deadline = time.monotonic() + 240
        while not (tree := psutil.Process(process.pid).children()) and time.monotonic() < deadline:
            time.sleep(0.01)
    assert tree
    assert psutil.wait_procs(tree, timeout=240)[1] == []


def test_what_is_not_installed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWOPC_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Missing, match="javac is not on PATH"):
        classes("flink", tmp_path)
