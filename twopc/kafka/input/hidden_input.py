"""Records that are written, and that no reader of committed records sees yet: an open transaction hides them.

Readers see a partition up to its last stable offset, where the first open transaction has begun; behind it stands what
anybody has written since (KIP-98). Where nobody ends that transaction, brokers abort it when its time-out has passed;
one that no coordinator knows hangs for ever (KIP-664).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from twopc.clock import date
from twopc.errors import TwoPhaseCommitError
from twopc.kafka.clients.control_client import LATEST, OpenProducer, OpenTransaction
from twopc.kafka.topic_partition import Position, TopicPartition


class EndsClient(Protocol):
    """Asks brokers for ends, and whose transactions are open; `ControlClient` does."""

    def offsets(self, at: Mapping[TopicPartition, int]) -> dict[TopicPartition, Position]: ...

    def high_watermarks(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, Position]: ...

    def open_producers(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, list[OpenProducer]]: ...

    def transactional_id(self, producer_id: int) -> str | None: ...

    def describe_transaction(self, transactional_id: str) -> OpenTransaction | None: ...


@dataclass(frozen=True, slots=True)
class Hidden:
    """The offsets of a partition that are hidden: from `end`, where readers stop, to before `log_end`."""

    partition: TopicPartition
    end: Position
    log_end: Position

    @property
    def offsets(self) -> int:
        return self.log_end - self.end

    def named(self, client: EndsClient) -> str:
        """Say what hides how much, as far as the brokers tell; whatever goes wrong, the rest is said."""
        try:
            whose = _whose(client, self.partition, self.end)
        except TwoPhaseCommitError as error:
            whose = f"a transaction that is open there (the brokers don't say whose: {error})"
        behind = f"what stands behind ({self.offsets:,} offsets) is hidden by {whose}"
        return f"{self.partition} can be read up to offset {self.end}: {behind}"


def hidden(client: EndsClient, partitions: Sequence[TopicPartition]) -> list[Hidden]:
    """Return what is hidden in which of these partitions, in order; two questions to the brokers."""
    log_ends = client.high_watermarks(partitions)
    # Asked for later: what is written between the two is hidden by nothing.
    ends = client.offsets(dict.fromkeys(partitions, LATEST))
    every = (Hidden(partition, ends[partition], log_ends[partition]) for partition in sorted(partitions))
    return [each for each in every if each.offsets > 0]


def _whose(client: EndsClient, partition: TopicPartition, end: Position) -> str:
    """Name the transaction that readers stop at."""
    every = client.open_producers([partition])[partition]
    if not every:
        return "a transaction that has just ended"
    producer_id = every[0].producer_id
    more = f", and {len(every) - 1} more behind it" if every[1:] else ""
    transactional_id = client.transactional_id(producer_id)
    found = None if transactional_id is None else client.describe_transaction(transactional_id)
    if found is None or found.described.start_ms < 0:
        return (
            f"an open transaction of producer {producer_id}{more}. No broker tells its transactional id: this user may "
            "not see it, or the transaction hangs, and nobody ends it but kafka-transactions.sh --bootstrap-server ... "
            f"abort --topic {partition.topic} --partition {partition.partition} --start-offset {end}"
        )
    return (
        f"the open transaction of {transactional_id!r} (producer {producer_id}){more}. It was begun at "
        f"{date(found.described.start_ms)}; its producer ends it, or the brokers {found.timeout_ms / 1000:,.0f} s later"
    )
