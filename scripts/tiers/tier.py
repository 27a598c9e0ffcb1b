"""Tiers as data: which tests, how many processes of tests at once, and what a release needs more of than a change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path


class Extent(Enum):
    """How much of a tier is played: what guards a change, or all of it, which guards a release."""

    CHANGE = "test"
    RELEASE = "proof"


@dataclass(frozen=True, slots=True)
class Tier:
    """The tests with these markers; `processes` of tests run at once.

    `in_files` is a marker that each file with such tests names, so that no other has to be imported; None where any
    file may have some.

    A tier whose tests start processes runs a failed test once more by itself: a slow machine fails such a test now and
    then. A test of the others depends on nothing outside it, so there a failure is a defect.
    """

    name: str
    markers: str
    processes: int
    starts_processes: bool = False
    in_files: str | None = None
    variables: Mapping[Extent, Mapping[str, str]] = field(default_factory=dict)

    def options(self, extent: Extent) -> list[str]:
        """The options of pytest that choose the tier's tests, and spread them over processes."""
        chosen = self.markers if extent is Extent.RELEASE else f"{self.markers} and not proof"
        spread = ["-n", str(self.processes), "--dist", "loadgroup"]
        return ["-m", chosen, *spread]

    def files(self, tests: Path) -> list[str]:
        """The files of a folder that may have tests of the tier, for pytest; none stands for all that it finds."""
        if self.in_files is None:
            return []
        return [str(path) for path in sorted(tests.rglob("test_*.py")) if names_marker(path, self.in_files)]


def names_marker(file: Path, marker: str) -> bool:
    """Whether the file names the marker, as `pytest.mark.MARKER`."""
    return f"mark.{marker}" in file.read_text()


TIERS = (
    Tier(
        "quick",
        "not broker and not spark and not drill and not simulation",
        2,
        variables={Extent.CHANGE: {"PROPERTY_EXAMPLES": "20"}, Extent.RELEASE: {"PROPERTY_EXAMPLES": "100"}},
    ),
    Tier(
        "simulation",
        "simulation",
        2,
        in_files="simulation",
        variables={
            Extent.CHANGE: {"TWOPC_SIMULATION_SEEDS": "4000"},
            Extent.RELEASE: {"TWOPC_SIMULATION_SEEDS": "20000"},
        },
    ),
    # These wait more than they compute. Each process has a broker of its own.
    Tier("broker", "broker and not drill and not spark", 3, starts_processes=True, in_files="broker"),
    Tier("drill", "drill and not spark", 3, starts_processes=True, in_files="drill"),
    Tier("spark", "spark", 3, starts_processes=True, in_files="spark"),
)
