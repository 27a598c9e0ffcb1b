"""Plays one tier, and once more those of its tests that failed, where chance may have failed them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from scripts.tiers.leftovers import Leftover
from scripts.tiers.results import Results, failed_tests, read_results
from scripts.tiers.tier import Extent, Tier

MOST_BY_CHANCE = 8
"""More failures than these are no chance: playing them again would only cost time."""

WIND_DOWN_SECONDS = 10.0
"""So long may pytest take after Ctrl-C to end what it has started, and to say how far it came."""

Wait = Callable[["subprocess.Popen[bytes]"], int]


class Terminated(KeyboardInterrupt):
    """This process alone was told to end; where it was Ctrl-C, the terminal has told all that were started, too."""


@dataclass(frozen=True, slots=True)
class TierResult:
    """What a tier came to. It passed if `problem` is empty; a flaky test failed once, and passed by itself.

    `left` are the processes that outlived the tests, and that the run had to end.
    """

    tier: str
    seconds: float
    results: Results
    failed: Sequence[str] = ()
    flaky: Sequence[str] = ()
    problem: str = ""
    left: Sequence[Leftover] = ()


def run_tier(tier: Tier, extent: Extent, folder: Path, wait: Wait = subprocess.Popen.wait) -> TierResult:
    """Play it; reports, pytest's cache and the texts of flaky tests stay in the folder. `wait` awaits pytest's end."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    began = time.monotonic()
    first = folder / "first.xml"
    chosen = [*tier.options(extent), *tier.files(Path("tests"))]
    code = _pytest(tier, extent, folder / "cache", [*chosen, "--durations=10", f"--junitxml={first}"], wait)
    failed = failed_tests(folder / "cache")
    flaky: list[str] = []
    if code == pytest.ExitCode.TESTS_FAILED and tier.starts_processes and 0 < len(failed) <= MOST_BY_CHANCE:
        print(f"== {tier.name}: once more, by themselves: {', '.join(failed)}", flush=True)
        code = _pytest(tier, extent, folder / "cache-again", ["-m", tier.markers, "-n", "0", *failed], wait)
        again = failed_tests(folder / "cache-again")
        flaky, failed = [test for test in failed if test not in again], again
    results = read_results(first)
    if flaky:
        texts = "\n\n".join(f"{name}\n{text}" for name, text in results.texts.items())
        (folder / "flaky.txt").write_text(texts)
    return TierResult(tier.name, time.monotonic() - began, results, failed, flaky, problem_of(code, failed))


def problem_of(code: int, failed: Sequence[str]) -> str:
    """Say why a tier did not pass; nothing where it did."""
    if code == pytest.ExitCode.OK:
        return ""
    if code == pytest.ExitCode.TESTS_FAILED and failed:
        return f"{len(failed)} failed"
    return f"pytest ended with {code}"


def _pytest(tier: Tier, extent: Extent, cache: Path, options: Sequence[str], wait: Wait) -> int:
    command = [sys.executable, "-m", "pytest", "-q", "-o", f"cache_dir={cache}", *options]
    tests = subprocess.Popen(command, env=os.environ | tier.variables.get(extent, {}))
    try:
        return wait(tests)
    except KeyboardInterrupt as interrupt:
        if isinstance(interrupt, Terminated):
            tests.terminate()
        try:
            tests.wait(WIND_DOWN_SECONDS)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            tests.kill()
        raise
