"""Facts of the ledger about attempts: that one began, that it is to stop, that it is over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from twopc.protocol.attempts import CheckpointSettings
from twopc.protocol.ids import AttemptId, CheckpointId
from twopc.protocol.outcomes import AbortedCheckpoint, AttemptFailure


@dataclass(frozen=True, slots=True)
class AttemptStarted:
    """A new attempt owns the job. `restored` is the checkpoint that it starts from, 0 for none.

    `restart`: it goes on where an attempt of the same run failed; a stop that was asked for is still wanted. `host` and
    `pid` are the driver's, for people; so are the `failure` of the attempt before, None where that did not fail, and
    the checkpoints that were `aborted` since the last fact that says so.
    """

    KIND: ClassVar[str] = "attempt-started"

    attempt: AttemptId
    parallelism: int
    settings: CheckpointSettings
    restored: CheckpointId
    started_ms: int
    restart: bool = False
    host: str = ""
    pid: int = 0
    failure: AttemptFailure | None = None
    aborted: tuple[AbortedCheckpoint, ...] = ()

    @property
    def driver(self) -> str:
        """Return where its driver is, in brackets after a blank; nothing where that is not known."""
        return f" (pid {self.pid} on {self.host})" if self.host else ""


@dataclass(frozen=True, slots=True)
class StopRequested:
    """Somebody asked for a final checkpoint of this attempt, which may be a `savepoint` with a `label`.

    `drain`: the input is read to the end that it has then, before that checkpoint.
    """

    KIND: ClassVar[str] = "stop-requested"

    attempt: AttemptId
    savepoint: bool = False
    label: str = ""
    drain: bool = False


@dataclass(frozen=True, slots=True)
class AttemptEnded:
    """Nothing more comes of this attempt. `finished`: its final checkpoint is committed everywhere.

    For people: when, in Unix milliseconds, and which checkpoints were `aborted` since the last fact that says so.
    """

    KIND: ClassVar[str] = "attempt-ended"

    attempt: AttemptId
    finished: bool
    reason: str
    ended_ms: int = 0
    aborted: tuple[AbortedCheckpoint, ...] = ()
