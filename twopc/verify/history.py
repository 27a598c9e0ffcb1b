"""The two histories that are held against each other: what a job must write, and what a reader saw."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from twopc.kafka.place import Place
from twopc.kafka.topic_partition import TopicPartition

Headers = tuple[tuple[str, bytes | None], ...]


class Outcome(Enum):
    """The outcome of a transaction, as the partition's own log says."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Transaction:
    """The records of one producer in one output partition between two markers; `number` counts them there, from 0."""

    producer_id: int
    producer_epoch: int
    partition: TopicPartition
    number: int
    outcome: Outcome

    def __str__(self) -> str:
        return (
            f"{self.outcome.value} transaction {self.number} of producer {self.producer_id}/{self.producer_epoch} "
            f"in {self.partition}"
        )


@dataclass(frozen=True, slots=True)
class Expected:
    """One record that the job must write, and the place of the input record that it is made of.

    `path` names the way that it went through the job: what one input partition makes on one path is in order.
    """

    source: Place
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    path: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Found:
    """One record that a reader of the output saw; `transaction` where that is known."""

    place: Place
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    transaction: Transaction | None = None


def identity(value: bytes | None, headers: Headers) -> int:
    """Return the 64 bits that stand for a record within its key; other ones in every process."""
    return hash((value, headers)) if headers else hash(value)
