"""Facts of the ledger about attempts: that one began, that it is to stop, that it is over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from twopc.protocol.attempts import CheckpointSettings
from twopc.protocol.ids import AttemptId, CheckpointId


@dataclass(frozen=True, slots=True)
class AttemptStarted:
    """A new attempt owns the job. `restored` is the checkpoint that it starts from, 0 for none.

    `restart`: it goes on where an attempt of the same run failed; a stop that was asked for is still wanted. `host` and
    `pid` are the driver's, for people.
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

    @property
    def driver(self) -> str:
        """Return where its driver is, in brackets after a blank; nothing where that is not known."""
        return f" (pid {self.pid} on {self.host})" if self.host else ""

    def to_json(self) -> dict[str, Any]:
        return {
            "attempt": self.attempt,
            "parallelism": self.parallelism,
            **self.settings.to_json(),
            "restored": self.restored,
            "started_ms": self.started_ms,
            "restart": self.restart,
            "host": self.host,
            "pid": self.pid,
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> AttemptStarted:
        return cls(
            attempt=AttemptId(int(body["attempt"])),
            parallelism=int(body["parallelism"]),
            settings=CheckpointSettings.from_json(body),
            restored=CheckpointId(int(body["restored"])),
            started_ms=int(body["started_ms"]),
            restart=bool(body.get("restart", False)),
            host=str(body.get("host", "")),
            pid=int(body.get("pid", 0)),
        )


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

    def to_json(self) -> dict[str, Any]:
        return {"attempt": self.attempt, "savepoint": self.savepoint, "label": self.label, "drain": self.drain}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> StopRequested:
        return cls(
            attempt=AttemptId(int(body["attempt"])),
            savepoint=bool(body.get("savepoint", False)),
            label=str(body.get("label", "")),
            drain=bool(body.get("drain", False)),
        )


@dataclass(frozen=True, slots=True)
class AttemptEnded:
    """Nothing more comes of this attempt. `finished`: its final checkpoint is committed everywhere."""

    KIND: ClassVar[str] = "attempt-ended"

    attempt: AttemptId
    finished: bool
    reason: str

    def to_json(self) -> dict[str, Any]:
        return {"attempt": self.attempt, "finished": self.finished, "reason": self.reason}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> AttemptEnded:
        return cls(AttemptId(int(body["attempt"])), bool(body["finished"]), str(body["reason"]))
