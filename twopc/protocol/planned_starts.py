"""Where a job that has nothing to restore begins to read, as a durable fact. Pure.

A job that starts at the latest record, or at a time, must start where its first attempt did until a checkpoint has
completed, whoever runs it: at today's latest it would skip what came in between.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from twopc.protocol.facts import PartitionPosition
from twopc.protocol.ids import AttemptId


@dataclass(frozen=True, slots=True)
class StartsPlanned:
    """The starts of an attempt, stored before anything was read from them.

    `mode` is how the job was told to start: who tells it otherwise does not mean these starts.
    """

    KIND: ClassVar[str] = "starts-planned"

    attempt: AttemptId
    mode: str
    starts: tuple[PartitionPosition, ...]

    def to_json(self) -> dict[str, Any]:
        return {"attempt": self.attempt, "mode": self.mode, "starts": [start.to_json() for start in self.starts]}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> StartsPlanned:
        return cls(
            attempt=AttemptId(int(body["attempt"])),
            mode=str(body["mode"]),
            starts=tuple(PartitionPosition.from_json(item) for item in body["starts"]),
        )
