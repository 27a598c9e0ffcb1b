"""Brings what a checkpoint took of a subtask into storage, beside the data loop, and acknowledges it.

A state that goes with the acknowledgement needs no storage, and is acknowledged by the loop. For all others there are
two executors, each one task at a time and in order: one writes a snapshot of the state into a local folder, and the
state takes no writes meanwhile; one stores it, which may take as long as the storage likes.

Invariant: nothing is acknowledged before the storing of the snapshot succeeded, but what the acknowledgement holds.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import assert_never

from twopc.clock import Clock
from twopc.errors import CheckpointDeclined
from twopc.faults.points import CrashPoint, reached
from twopc.protocol.facts import StateHandle, SubtaskSnapshot
from twopc.protocol.followed_times import NumberTimes
from twopc.protocol.ids import NO_CHECKPOINT, CheckpointId, SubtaskIndex
from twopc.protocol.messages import Ack, Decline
from twopc.runtime.link import Link, MessageTooLarge
from twopc.runtime.state import LocalSnapshot, SubtaskStore

log = logging.getLogger(__name__)

SnapshotOf = Callable[[StateHandle], SubtaskSnapshot]


@dataclass(frozen=True, slots=True)
class LoopPause:
    """The pause of the data loop for a checkpoint: its length, the part until its pre-commit returned, and its end.

    `times` are the stream times of then.
    """

    ms: float
    pre_commit_ms: float
    ended_at: float
    times: tuple[NumberTimes, ...]


class SnapshotPipeline:
    """Writes, stores and acknowledges. `guarded` runs a piece of work and tells the loop what it raises."""

    def __init__(
        self,
        index: SubtaskIndex,
        store: SubtaskStore,
        link: Link,
        clock: Clock,
        snapshot_executor: Executor,
        store_executor: Executor,
        guarded: Callable[[Callable[[], None]], None],
    ) -> None:
        self._index = index
        self._store = store
        self._link = link
        self._clock = clock
        self._snapshot_executor = snapshot_executor
        self._store_executor = store_executor
        self._guarded = guarded
        self.acknowledged = NO_CHECKPOINT

    def begin(
        self,
        checkpoint_id: CheckpointId,
        taken: LocalSnapshot | StateHandle,
        snapshot_of: SnapshotOf,
        paused_at: float,
        pre_committed_at: float,
        times: tuple[NumberTimes, ...],
    ) -> None:
        """Begin to bring it into storage; the loop has stood still since `paused_at`, and goes on now."""
        now = self._clock.monotonic()
        pause = LoopPause((now - paused_at) * 1000, (pre_committed_at - paused_at) * 1000, now, times)
        match taken:
            case StateHandle():
                self._acknowledge(checkpoint_id, snapshot_of(taken), pause, write_ms=0.0, store_ms=0.0)
            case LocalSnapshot():
                self._snapshot_executor.submit(self._guarded, lambda: self._write(taken, snapshot_of, pause))
            case _:
                assert_never(taken)

    def decline(self, checkpoint_id: CheckpointId, error: CheckpointDeclined) -> None:
        """Say that this subtask can't take the checkpoint."""
        log.warning("checkpoint %d declined by subtask %d: %s", checkpoint_id, self._index, error)
        self._link.send(Decline(checkpoint_id, str(error)))

    def _write(self, taken: LocalSnapshot, snapshot_of: SnapshotOf, pause: LoopPause) -> None:
        try:
            self._store.write(taken)
        except CheckpointDeclined as error:
            self.decline(taken.checkpoint_id, error)
            return
        write_ms = (self._clock.monotonic() - pause.ended_at) * 1000
        self._store_executor.submit(self._guarded, lambda: self._put(taken, snapshot_of, pause, write_ms))

    def _put(self, taken: LocalSnapshot, snapshot_of: SnapshotOf, pause: LoopPause, write_ms: float) -> None:
        checkpoint_id = taken.checkpoint_id
        try:
            handle = self._store.put(taken)
        except CheckpointDeclined as error:
            self.decline(checkpoint_id, error)
            return
        store_ms = (self._clock.monotonic() - pause.ended_at) * 1000
        # Only now that it is stored: acknowledged earlier, a checkpoint could complete that nobody can restore.
        self._acknowledge(checkpoint_id, snapshot_of(handle), pause, write_ms, store_ms)

    def _acknowledge(
        self, checkpoint_id: CheckpointId, snapshot: SubtaskSnapshot, pause: LoopPause, write_ms: float, store_ms: float
    ) -> None:
        reached(CrashPoint.AFTER_STORE, checkpoint=checkpoint_id, subtask=self._index)
        try:
            self._link.send(
                Ack(checkpoint_id, snapshot, pause.ms, store_ms, pause.pre_commit_ms, write_ms, pause.times)
            )
        except MessageTooLarge as error:
            hint = "raise the parallelism, so that a subtask has fewer partitions"
            self.decline(checkpoint_id, CheckpointDeclined(f"what describes the snapshot takes {error}: {hint}"))
            return
        reached(CrashPoint.AFTER_ACK, checkpoint=checkpoint_id, subtask=self._index)
        self.acknowledged = checkpoint_id
