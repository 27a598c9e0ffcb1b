"""A scripted source, a recording sink and a storage that can refuse, around one subtask."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from twopc.context import JobContext
from twopc.errors import CheckpointDeclined
from twopc.kafka.topic_partition import TopicPartition
from twopc.operators import Dataflow
from twopc.protocol.facts import Committable, SplitPosition, StateHandle
from twopc.protocol.followed_times import FollowedTime
from twopc.protocol.ids import CheckpointId, SubtaskIndex
from twopc.protocol.messages import (
    Complete,
    Trigger,
)
from twopc.record import Batch, Row
from twopc.runtime.link import MemoryLink
from twopc.runtime.subtask import Subtask
from twopc.sink import PreCommit, Settled
from twopc.source import SourceReader
from twopc.testing.rows import InputRow
from twopc.two_phase import TwoPhaseCommitSink

PARTITION = TopicPartition("in", 0)


@dataclass
class ScriptedReader(SourceReader):
    """Gives one batch per poll, then nothing."""

    batches: list[list[bytes]]
    endless: bool = False
    read: int = 0
    committed: list[tuple[int, int]] = field(default_factory=list)
    waited: list[float] = field(default_factory=list)

    def poll(self, timeout: float, most: int) -> Batch | None:
        self.waited.append(timeout)
        if not self.batches:
            return None
        values = self.batches.pop(0)
        rows = [InputRow(value, value, offset_=self.read + index, timestamp_=1) for index, value in enumerate(values)]
        self.read += len(values)
        return Batch(rows, list(values))

    def positions(self, waiting: Iterable[Row] = ()) -> tuple[SplitPosition, ...]:
        read = next((row.offset() for row in waiting), self.read)
        return (SplitPosition("in[0]", 0, read),)

    def finished(self) -> bool:
        return not self.endless and not self.batches

    def bytes_read(self) -> int:
        return 8 * self.read

    def bound(self) -> bool:
        self.endless = False
        return True

    def commit_positions(self, checkpoint_id: CheckpointId, positions: Sequence[SplitPosition]) -> None:
        self.committed.append((checkpoint_id, positions[0].position))


@dataclass
class RecordingSink(TwoPhaseCommitSink[list[bytes]]):
    """Keeps transactions as lists; says what was done, in order."""

    log: list[str] = field(default_factory=list)
    written: int = 0
    fail_pre_commit: Exception | None = None
    fail_commit: Exception | None = None

    def begin(self) -> list[bytes]:
        self.log.append("begin")
        return []

    def write(self, txn: list[bytes], batch: Batch) -> int:
        txn.extend(batch.values)
        self.written += len(batch)
        return len(batch)

    def pre_commit(self, txn: list[bytes], request: PreCommit) -> Committable | None:
        if self.fail_pre_commit is not None:
            raise self.fail_pre_commit
        if not txn:
            return None
        self.log.append(f"pre-commit {request.checkpoint_id} {b''.join(txn).decode()}")
        return Committable(f"t@{request.checkpoint_id}", request.checkpoint_id, SubtaskIndex(0), {})

    def commit(self, committable: Committable, proof: Complete) -> None:
        if self.fail_commit is not None:
            raise self.fail_commit
        self.log.append(f"commit {committable.name} by {proof.checkpoint_id}")

    def release(self, completed: CheckpointId) -> None:
        self.log.append(f"release {completed}")

    def abort(self, txn: list[bytes]) -> None:
        self.log.append("abort open")

    def recover(
        self, context: JobContext, committables: Sequence[Committable], confirmed: frozenset[str]
    ) -> list[Settled]:
        raise NotImplementedError


class FakeStorage:
    """Stores nothing; can refuse."""

    def __init__(self) -> None:
        self.refuse: str | None = None

    def put(
        self, checkpoint_id: CheckpointId, subtask: SubtaskIndex, local_folder: Path, key_count: int
    ) -> StateHandle:
        if self.refuse is not None:
            raise CheckpointDeclined(self.refuse)
        return StateHandle(f"chk-{checkpoint_id}/subtask-{subtask}", "digest", 1, 1)

    def put_changes(
        self, checkpoint_id: CheckpointId, subtask: SubtaskIndex, base: CheckpointId, written: bytes, key_count: int
    ) -> StateHandle:
        raise AssertionError("the state in memory gives no account of its changes")


@dataclass
class Stage:
    """A subtask, and what surrounds it."""

    reader: ScriptedReader
    sink: RecordingSink
    storage: FakeStorage
    link: MemoryLink
    subtask: Subtask
    dataflow: Dataflow

    def steps(self, count: int) -> None:
        for _ in range(count):
            self.subtask.step()

    def run(self) -> None:
        """Do as a worker does, to the end."""
        with self.subtask.running():
            while not self.subtask.ended:
                self.subtask.step()

    def sent(self, kind: type) -> list[Any]:
        return [message for message in self.link.sent if isinstance(message, kind)]


def trigger(stage: Stage, number: int, *, final: bool = False, times: tuple[FollowedTime, ...] = ()) -> None:
    stage.link.deliver(Trigger(CheckpointId(number), final, times))


def complete(stage: Stage, number: int) -> None:
    stage.link.deliver(Complete(CheckpointId(number)))
