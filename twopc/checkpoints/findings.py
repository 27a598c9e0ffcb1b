"""The findings about stored files, in words that are a closed set."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum

from twopc.errors import CheckpointCorrupted, ForeignFile, NewerFormat
from twopc.protocol.envelope import open_fact
from twopc.protocol.ids import CheckpointId
from twopc.storage.store import CheckpointStore

_FACT_ENDS = b"}\n"


class Problem(StrEnum):
    """The problems of a file; the value is for people and scripts."""

    MISSING = "missing"
    TRUNCATED = "truncated"
    DAMAGED = "damaged"
    FOREIGN = "foreign"
    NEWER_FORMAT = "newer format"


@dataclass(frozen=True, slots=True)
class Finding:
    """One file, relative to the checkpoint folder, and what is wrong with it."""

    file: str
    problem: Problem
    message: str


class WrongFile(CheckpointCorrupted):
    """A file of a checkpoint is not what was stored; `finding` says which, and how."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(f"{finding.file} is {finding.problem}: {finding.message}")
        self.finding = finding


@dataclass(slots=True)
class Examination:
    """The number of checkpoints, files and bytes that were examined, and all that is wrong.

    `left_over` are files that nothing that is kept names, as a crash leaves them: the job deletes its own after its
    next checkpoint, and when it starts those that trying the store left beside all jobs. They are told of where all
    checkpoints were looked at, and none is wrong.
    """

    job: str
    checkpoints: list[CheckpointId] = field(default_factory=list)
    files: int = 0
    size_bytes: int = 0
    findings: list[Finding] = field(default_factory=list)
    left_over: list[str] = field(default_factory=list)

    def read(self, size_bytes: int) -> None:
        self.files += 1
        self.size_bytes += size_bytes

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Go on after what is in this context where a file is wrong."""
        try:
            yield
        except WrongFile as error:
            self.findings.append(error.finding)


def refused_fact(store: CheckpointStore, name: str, source: str, error: CheckpointCorrupted) -> WrongFile:
    """Tell what is wrong with a stored fact that was refused; `source` is what it is called."""
    if isinstance(error, NewerFormat):
        problem = Problem.NEWER_FORMAT
    elif isinstance(error, ForeignFile):
        problem = Problem.FOREIGN
    else:
        problem = _of_contents(store, name, source)
    return WrongFile(Finding(source, problem, str(error)))


def _of_contents(store: CheckpointStore, name: str, source: str) -> Problem:
    """Tell a fact that was cut from one that was changed, and one that is whole, but another, from both."""
    try:
        data = store.get(name)
        if not data.endswith(_FACT_ENDS):
            return Problem.TRUNCATED
        open_fact(data, source)
    except NewerFormat:
        return Problem.NEWER_FORMAT
    except (OSError, CheckpointCorrupted):
        return Problem.DAMAGED
    return Problem.FOREIGN


def refused_ledger(source: str, error: CheckpointCorrupted) -> Finding:
    """Tell what is wrong with a ledger of which each entry is whole by itself."""
    return Finding(source, Problem.FOREIGN if isinstance(error, ForeignFile) else Problem.DAMAGED, str(error))


def stranger(source: str) -> Finding:
    """Tell of a file whose name nothing that is stored here has."""
    return Finding(source, Problem.FOREIGN, "nothing that is stored here has this name")
