"""A system under comparison: how it is had, and the command that runs a case on it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from peers.case import Case

PROGRAMS = Path(__file__).with_name("programs")


class Missing(Exception):
    """The system can't be had on this machine; says why."""


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a run. `name` is used for nothing before it: for groups, prefixes and application ids.

    second: the topic that a job reads beside its input; dead: that of its dead letters. Both empty where it has none.
    """

    servers: str
    source: str
    target: str
    name: str
    folder: Path
    second: str = ""
    dead: str = ""


@dataclass(frozen=True, slots=True)
class Launch:
    """One command. `ends`: it ends by itself when it has read its input; others are ended when the output is whole."""

    argv: list[str]
    env: Mapping[str, str] = field(default_factory=dict)
    ends: bool = True


class System(ABC):
    """One of those that are compared."""

    name: ClassVar[str]
    guarantee: ClassVar[str] = "exactly once"
    jobs: ClassVar[frozenset[str]]
    settings: ClassVar[str]
    """What was set, in a line for the report."""

    def prepare(self) -> None:
        """Get what it needs, once a machine; raise Missing if that can't be."""

    @abstractmethod
    def version(self) -> str: ...

    @abstractmethod
    def launch(self, case: Case, place: Place) -> Launch: ...
