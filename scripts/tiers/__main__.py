"""`python -m scripts.tiers test|proof [TIER...]`: run tiers one after the other, and say at the end how each ended.

Exit code: 0 when all passed, flaky tests included, 1 when one did not, 130 after Ctrl-C or SIGTERM.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

from scripts.tiers.results import Results
from scripts.tiers.run import TierResult, run_tier
from scripts.tiers.tier import TIERS, Extent

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".test-results"
CHECK = "check"
INTERRUPTED = 130


def main(arguments: Sequence[str]) -> int:
    """Run the tiers that are named, all of them where none is."""
    parser = argparse.ArgumentParser(prog="python -m scripts.tiers", description=__doc__)
    parser.add_argument("extent", choices=[extent.value for extent in Extent])
    names = [CHECK, *(tier.name for tier in TIERS)]
    parser.add_argument("tiers", nargs="*", metavar="TIER", help=f"{', '.join(names)}; all of them unless named")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.tiers if name not in names]:
        parser.error(f"there is no tier {unknown[0]!r}: take {', '.join(names)}")
    extent = Extent(options.extent)
    signal.signal(signal.SIGTERM, _interrupt)
    began = time.monotonic()
    results: list[TierResult] = []
    try:
        for name in options.tiers or names:
            print(f"== {name}", flush=True)
            results.append(_run(name, extent))
    except KeyboardInterrupt:
        return INTERRUPTED
    print(summary(extent, results, time.monotonic() - began))
    return 1 if any(result.problem for result in results) else 0


def summary(extent: Extent, results: Sequence[TierResult], seconds: float) -> str:
    """Return the last lines of a run: a line a tier, then what failed or was flaky, then the verdict."""
    lines = [f"== make {extent.value}, tier by tier"]
    for result in results:
        counts = f"{result.results.passed} passed, {result.results.skipped} skipped" if result.tier != CHECK else ""
        lines.append(f"{result.tier:12} {clock(result.seconds):>6}  {result.problem or 'passed':12}  {counts}".rstrip())
    for result in results:
        lines += [f"FAILED {test}" for test in result.failed]
        text = FOLDER.relative_to(ROOT) / result.tier / "flaky.txt"
        lines += [
            f"flaky: {test} failed once and passed by itself; its first text is in {text}" for test in result.flaky
        ]
    problems = [f"{result.tier} ({result.problem})" for result in results if result.problem]
    verdict = f"FAILED: {', '.join(problems)}" if problems else "passed"
    lines.append(f"make {extent.value}: {verdict} in {clock(seconds)}")
    return "\n".join(lines)


def clock(seconds: float) -> str:
    """Return a duration as minutes and seconds."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def _run(name: str, extent: Extent) -> TierResult:
    if name == CHECK:
        began = time.monotonic()
        code = subprocess.call(["make", "--no-print-directory", CHECK], cwd=ROOT)
        problem = f"ended with {code}" if code else ""
        return TierResult(CHECK, time.monotonic() - began, Results(0, 0, {}), problem=problem)
    tier = next(tier for tier in TIERS if tier.name == name)
    return run_tier(tier, extent, FOLDER / name)


def _interrupt(_signal: int, _frame: FrameType | None) -> NoReturn:
    # Whoever ends this process alone ends what it has started, too.
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
