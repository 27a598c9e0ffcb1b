"""The verdict of a drill, as frozen values: checks with their verdicts, figures, a timeline. Pure."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from enum import IntEnum, StrEnum
from importlib.metadata import PackageNotFoundError, version
from typing import Any


class CheckVerdict(StrEnum):
    """The verdict on one promise."""

    HELD = "held"
    BROKEN = "broken"
    NOT_JUDGED = "not judged"
    MISSED = "missed"
    """What was to be done did not happen, so that nothing is proved."""


class Exit(IntEnum):
    """The exit codes of the command."""

    ALL_HELD = 0
    BROKEN = 1
    COULD_NOT_RUN = 2


@dataclass(frozen=True, slots=True)
class Check:
    """One promise, and how it fared. `text` is one sentence; `findings` name each thing that is wrong."""

    name: str
    verdict: CheckVerdict
    text: str
    findings: tuple[str, ...] = ()

    @classmethod
    def of(cls, name: str, findings: Sequence[str], held: str, broken: str) -> Check:
        """A check that is broken by any finding."""
        if findings:
            return cls(name, CheckVerdict.BROKEN, broken, tuple(findings))
        return cls(name, CheckVerdict.HELD, held)

    @classmethod
    def not_judged(cls, name: str, why: str) -> Check:
        return cls(name, CheckVerdict.NOT_JUDGED, why)


@dataclass(frozen=True, slots=True)
class Moment:
    """One thing that happened, `at` seconds after the drill began. `kind` is the lane that it is drawn in."""

    at: float
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class DrillResult:
    """A whole drill. `figures` are numbers by name, the unit as the name's last word; None where not measured."""

    drill: str
    job: str
    began_ms: int
    seconds: float
    subject: str
    checks: tuple[Check, ...]
    figures: Mapping[str, float | None] = field(default_factory=dict)
    timeline: tuple[Moment, ...] = ()
    settings: Mapping[str, object] = field(default_factory=dict)

    @property
    def began(self) -> str:
        """The begin, as a date and a time of day."""
        return datetime.fromtimestamp(self.began_ms / 1000, UTC).isoformat(timespec="seconds")

    @property
    def held(self) -> bool:
        return self.exit_code is Exit.ALL_HELD

    @property
    def exit_code(self) -> Exit:
        """What is broken counts, whatever else was missed."""
        if self.named(CheckVerdict.BROKEN):
            return Exit.BROKEN
        return Exit.COULD_NOT_RUN if self.named(CheckVerdict.MISSED) else Exit.ALL_HELD

    def named(self, verdict: CheckVerdict) -> list[str]:
        """The names of the checks with this verdict."""
        return [check.name for check in self.checks if check.verdict is verdict]

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "began": self.began, "held": self.held, "exit_code": int(self.exit_code)}


def versions() -> dict[str, str]:
    """The versions of all that took part, for later readers of the report."""
    packages = {"twopc": "twopc-streams", "confluent-kafka": "confluent-kafka", "pyspark": "pyspark"}
    found = {"python": platform.python_version()}
    for name, package in packages.items():
        with suppress(PackageNotFoundError):
            found[name] = version(package)
    return found
