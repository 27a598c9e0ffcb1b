"""Helpers for the Kafka tests: rows, batches and contexts, and one subtask's sink driven by hand."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka.admin import AdminClient, NewPartitions  # type: ignore[attr-defined]

from twopc.config import RunSettings
from twopc.context import JobContext, SubtaskContext
from twopc.kafka.positions.partition_position import PartitionPosition
from twopc.kafka.sink import KafkaSink
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.protocol.facts import Committable
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex
from twopc.protocol.messages import Complete
from twopc.record import Batch, Headers
from twopc.sink import Committer, PreCommit, Settled
from twopc.source import SourceReader
from twopc.testing.topics import read_topic

INPUT_ID = "an-input-topic"


@dataclass(frozen=True, slots=True)
class FakeRow:
    """One input record as a source would hand it over."""

    index: int
    payload: Any
    row_key: bytes | None = None
    row_timestamp: tuple[int, int] = (0, 0)
    row_headers: Headers | None = None

    def topic(self) -> str:
        return "input"

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self.index

    def key(self) -> bytes | None:
        return self.row_key

    def value(self) -> Any:
        return self.payload

    def timestamp(self) -> tuple[int, int]:
        return self.row_timestamp

    def headers(self) -> Headers | None:
        return self.row_headers


def batch_of(*values: Any) -> Batch:
    return Batch([FakeRow(index, value) for index, value in enumerate(values)], list(values))


def settings(bootstrap_servers: str, **changes: Any) -> RunSettings:
    return RunSettings(bootstrap_servers=bootstrap_servers, **changes)


class DrivenSink:
    """One job's sink with one subtask, its protocol spoken by hand. Checkpoint ids are the test's own.

    The input topic is only one that exists: a group can hold positions of no other.
    """

    def __init__(self, bootstrap_servers: str, job: str, topic: Any, input_topic: str, **options: Any) -> None:
        self.job = job
        self.input_topic = input_topic
        self.settings = settings(bootstrap_servers)
        self.topic = topic
        self.options = options
        self.attempt = 0
        self._committer: Committer | None = None
        self.writer: Any = None

    @property
    def context(self) -> JobContext:
        return JobContext(self.job, AttemptId(self.attempt), 1, self.settings)

    @property
    def committer(self) -> Committer:
        """The driver's part of the attempt."""
        if self._committer is None:
            self._committer = KafkaSink(self.topic, **self.options).open_committer(self.context)
        return self._committer

    @property
    def group(self) -> str:
        return self.job

    def start_attempt(self) -> list[str]:
        """Begin the next attempt as a driver and a subtask would; return what was lingering."""
        self.attempt += 1
        sink, context = KafkaSink(self.topic, **self.options), self.context
        self._committer = None
        lingering = self.committer.abort_lingering()
        self.writer = sink.open_writer(
            SubtaskContext(context.job, context.attempt, context.parallelism, context.settings, SubtaskIndex(0))
        )
        self.writer.begin()
        return lingering

    def write(self, *values: Any) -> int:
        written: int = self.writer.write(batch_of(*values))
        return written

    def pre_commit(self, checkpoint: int, position: int = 0) -> Committable:
        """Pre-commit a transaction that holds something, and begin the next."""
        where = PartitionPosition(TopicPartition(self.input_topic, 0), INPUT_ID, Position(position)).to_split_position()
        committable: Committable | None = self.writer.pre_commit(
            PreCommit(CheckpointId(checkpoint), (where,), self.group)
        )
        assert committable is not None
        self.writer.begin()
        return committable

    def commit(self, committable: Committable) -> None:
        self.writer.commit(committable, Complete(committable.checkpoint_id))

    def complete(self, committable: Committable) -> None:
        """Commit what a completed checkpoint holds, and release what that allows."""
        self.commit(committable)
        self.writer.release(committable.checkpoint_id)

    def recover(self, committables: Sequence[Committable], confirmed: Sequence[str] = ()) -> list[Settled]:
        committer = KafkaSink(self.topic, **self.options).open_committer(self.context)
        return committer.settle(committables, frozenset(confirmed))

    def die(self) -> None:
        """Leave without aborting anything, as a killed process does."""
        self.writer.close()


def values_of(bootstrap_servers: str, topic: str, isolation: str = "read_committed") -> list[bytes | None]:
    """Return what a reader of the topic sees, in the order of each partition."""
    return [record.value for record in read_topic(bootstrap_servers, topic, isolation=isolation)]


def drain(reader: SourceReader, turns: int = 600) -> list[Any]:
    """Return the values that are read up to the end of a reader's input."""
    values: list[Any] = []
    for _ in range(turns):
        if reader.finished():
            return values
        batch = reader.poll(0.1, 1000)
        values += [] if batch is None else batch.values
    raise AssertionError(f"the read did not end; it stands at {reader.positions()}")


def grow_topic(bootstrap_servers: str, topic: str, partitions: int) -> None:
    """Give a topic so many partitions, and return when whoever asks the broker is told of each, with its leader."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(60)

    def are_led() -> bool:
        told = admin.list_topics(topic, 10).topics[topic].partitions.values()
        return len(told) == partitions and all(each.leader >= 0 for each in told)

    eventually(are_led)


def eventually(holds: Callable[[], bool], seconds: float = 120) -> None:
    """Return when it holds: the broker ends a transaction a little after it has said that it will."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"it did not come to hold within {seconds} s"
        time.sleep(0.05)
