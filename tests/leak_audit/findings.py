"""The findings of an audit, and the places where it looks: values only."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path


class Problem(Enum):
    """The problems that an ended job must not leave; the value says why each matters."""

    OPEN_TRANSACTION = "a transaction under the job's prefix is not decided: readers of its partitions wait"
    HIDDEN_RECORDS = "the last stable offset is below the high watermark: read_committed readers don't see the end"
    HANGING_TRANSACTION = "a partition has an open transaction that no transaction coordinator knows: it never ends"
    SILENT_BROKERS = "the brokers gave no answer, so nothing is known of what they hold"
    MISSING_TOPIC = "an output topic is not there"
    LEAKED_PROCESS = "a process of the job still runs"
    LEFTOVER_WORK_FOLDER = "a worker's folder for local state was not removed"
    HELD_LOCK = "a process still holds the lock of a RocksDB"
    TEMPORARY_FILE = "something half-written or half-removed is in the checkpoint folder"
    UNNAMED_FILE = "a stored file is in no manifest: nobody will ever read it, and it takes room"
    OPEN_TO_OTHERS = "another user may read or write what is stored"
    NOT_EMPTY = "a folder that should be empty holds something"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that should not be there."""

    problem: Problem
    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.problem.name}: {self.where}: {self.what} ({self.problem.value})"


@dataclass(frozen=True, slots=True)
class Place:
    """The places of a job. One that is not given is not looked at.

    `prefix` of the transactional ids is the job's name unless given. `marker` is a name and value in the environment of
    every process of the job. `temporary` is where workers make their folders; `empty` are folders of the run's own
    that it must leave empty.
    """

    job: str
    bootstrap_servers: str = ""
    topics: tuple[str, ...] = ()
    prefix: str = ""
    checkpoint_dir: Path | None = None
    marker: tuple[str, str] | None = None
    temporary: Path = field(default_factory=lambda: Path(tempfile.gettempdir()))
    empty: tuple[Path, ...] = ()

    @property
    def transactional_prefix(self) -> str:
        return self.prefix or self.job
