"""Reads what pytest leaves of a run: which tests failed, and with what text."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

FAILED_FILE = Path("v/cache/lastfailed")
"""Where pytest's cache has the tests that failed, as `--last-failed` takes them."""


@dataclass(frozen=True, slots=True)
class Results:
    """How many tests ended how, and the text of each that failed, by its name in the report."""

    passed: int
    skipped: int
    texts: Mapping[str, str]


def read_results(report: Path) -> Results:
    """Read a report of JUnit's form; no tests where pytest wrote none."""
    if not report.exists():
        return Results(0, 0, {})
    counts: Counter[str] = Counter()
    texts: dict[str, str] = {}
    for case in ElementTree.parse(report).iter("testcase"):  # noqa: S314  pytest wrote it a moment ago
        faults = [part for part in case if part.tag in ("failure", "error")]
        counts["failed" if faults else "skipped" if case.find("skipped") is not None else "passed"] += 1
        if faults:
            name = f"{case.get('classname', '')}::{case.get('name', '')}"
            texts[name] = "\n".join(part.text or part.get("message") or "" for part in case if part.tag != "properties")
    return Results(counts["passed"], counts["skipped"], texts)


def failed_tests(cache: Path) -> list[str]:
    """Return the ids of the tests that failed in the run with this cache folder, as the command line takes them."""
    file = cache / FAILED_FILE
    return sorted(map(_without_group, json.loads(file.read_text()))) if file.exists() else []


def _without_group(test: str) -> str:
    # pytest-xdist writes the group of a test behind its id, and behind the parameters.
    return test if test.endswith("]") else test.partition("@")[0] if "]" not in test else test[: test.rindex("]") + 1]
