"""Which checkpoint is wanted next: what people asked for, in Flink's order. Pure.

Invariants: a savepoint goes before a manual checkpoint, and each before those of its kind that were asked for later;
the queue is bounded, and whoever finds it full is told so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from twopc.errors import ConfigurationError, Unavailable
from twopc.protocol.checkpoints import CheckpointKind, FailureReason
from twopc.protocol.instant import Instant

MOST_REQUESTS = 1_000
LONGEST_LABEL = 128


@dataclass(frozen=True, slots=True)
class Wanted:
    """A checkpoint that is to be taken, and since when. What nobody asked for by name has no label and no request."""

    kind: CheckpointKind
    asked: Instant
    label: str = ""
    request_id: str = ""

    @property
    def told(self) -> Mapping[str, Any]:
        """How an event names it."""
        return {"checkpoint_kind": self.kind, "label": self.label, "request_id": self.request_id}


class RequestQueue:
    """The manual checkpoints and savepoints that are not triggered yet."""

    def __init__(self) -> None:
        self._savepoints: list[Wanted] = []
        self._manual: list[Wanted] = []

    def put(self, wanted: Wanted) -> None:
        """Enter a request; raise Unavailable if there are too many."""
        if len(self) >= MOST_REQUESTS:
            raise Unavailable(
                f"{FailureReason.TOO_MANY_CHECKPOINT_REQUESTS}: {MOST_REQUESTS} requests for checkpoints are waiting "
                "already; ask again when some of them are answered"
            )
        (self._savepoints if wanted.kind is CheckpointKind.SAVEPOINT else self._manual).append(wanted)

    @property
    def first(self) -> Wanted | None:
        waiting = self._savepoints or self._manual
        return waiting[0] if waiting else None

    @property
    def waiting(self) -> tuple[Wanted, ...]:
        """All of them, in the order in which they are to be triggered."""
        return (*self._savepoints, *self._manual)

    @property
    def oldest(self) -> int | None:
        """When the oldest of them was asked for, in monotonic milliseconds."""
        return min((wanted.asked.monotonic_ms for wanted in self.waiting), default=None)

    def remove(self, wanted: Wanted) -> None:
        (self._savepoints if wanted.kind is CheckpointKind.SAVEPOINT else self._manual).remove(wanted)

    def clear(self) -> tuple[Wanted, ...]:
        """Take all of them out."""
        waiting = self.waiting
        self._savepoints, self._manual = [], []
        return waiting

    def __len__(self) -> int:
        return len(self._savepoints) + len(self._manual)


def check_asked(kind: CheckpointKind, label: str, request_id: str) -> None:
    """Raise ConfigurationError for what can't be asked for."""
    if not request_id:
        raise ConfigurationError("request_id is empty: whoever asks for a checkpoint names the request")
    if kind not in (CheckpointKind.MANUAL, CheckpointKind.SAVEPOINT):
        raise ConfigurationError(
            f"a {kind} checkpoint can't be asked for: ask for a manual one, a savepoint, or a stop"
        )
    if len(label) > LONGEST_LABEL or not label.isprintable():
        raise ConfigurationError(f"a checkpoint's label may have {LONGEST_LABEL} printable characters, on one line")
