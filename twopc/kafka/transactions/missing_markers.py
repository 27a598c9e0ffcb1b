"""Writes the markers that a broker owes: it took a transaction for ended, and left its partitions open.

A transaction coordinator that ends a transaction skips partitions that have no leader at that moment: it takes them for
deleted, and says CompleteCommit (measured on 4.3.1, where a node that stood still was fenced, and back within 60 ms).
Readers then see neither this output nor what follows, and an abort of the same producer's next one would take it away.

Invariant: a marker is written only for a transaction whose coordinator says, before and after the partition was seen to
be open, that this very one was committed. Its producer must not begin another one meanwhile.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Protocol

from twopc.errors import ConfigurationError, Unavailable
from twopc.kafka.clients.control_client import OpenTransaction, TopicInfo
from twopc.kafka.clients.described_transaction import BrokerState, Described
from twopc.kafka.clients.retry import backoff
from twopc.kafka.topic_partition import TopicPartition
from twopc.kafka.transactions.committable import PreparedTransaction
from twopc.protocol.facts import Committable

log = logging.getLogger(__name__)

OFFSETS_TOPIC = "__consumer_offsets"
MARKERS_BUDGET_SECONDS = 30.0
SLOW_COMMIT_SECONDS = 0.5
"""A commit that takes longer may have met brokers that were away, and may have forgotten partitions meanwhile."""


class MarkerClient(Protocol):
    """The part of `twopc.kafka.clients.leaders.LeaderClient` that finds and closes open transactions."""

    def describe_transaction(self, transactional_id: str) -> OpenTransaction | None: ...

    def topics(self, names: Iterable[str]) -> dict[str, TopicInfo]: ...

    def open_in(self, partitions: Iterable[TopicPartition], producer: tuple[int, int]) -> dict[TopicPartition, int]: ...

    def write_commit_markers(self, open_in: Mapping[TopicPartition, int], producer: tuple[int, int]) -> None: ...


def close_committed(client: MarkerClient, committables: Iterable[Committable], budget_seconds: float) -> None:
    """Write what is missing for these, which are committed; raise ConfigurationError if that isn't allowed."""
    for committable in committables:
        _close(client, PreparedTransaction.from_committable(committable), budget_seconds)


def _close(client: MarkerClient, prepared: PreparedTransaction, budget_seconds: float) -> None:
    doubt: Unavailable | None = None
    for _ in backoff(budget_seconds):
        try:
            if _turn(client, prepared):
                return
            doubt = None
        except Unavailable as error:
            doubt = error
    # What its coordinator has not ended yet, it has not forgotten either.
    if doubt is not None:
        raise Unavailable(
            f"transaction {prepared.name} is committed, but whether readers can see it could not be told within "
            f"{budget_seconds:.0f} s: {doubt}"
        )


def _turn(client: MarkerClient, prepared: PreparedTransaction) -> bool:
    """Look once, and write what is missing; return whether there is nothing left to look for."""
    found = client.describe_transaction(prepared.transactional_id)
    if found is None or not _is_itself(prepared, found.described):
        return True
    if found.described.state is not BrokerState.COMPLETE_COMMIT:
        return False
    producer = (prepared.producer_id, prepared.producer_epoch)
    open_in = _open_in(client, prepared, producer)
    if not open_in:
        return True
    again = client.describe_transaction(prepared.transactional_id)
    if again is None or again.described != found.described:
        return False
    _write(client, prepared, open_in, producer)
    return False


def _is_itself(prepared: PreparedTransaction, described: Described) -> bool:
    return described.state in (BrokerState.PREPARE_COMMIT, BrokerState.COMPLETE_COMMIT) and (
        (described.producer_id, described.producer_epoch, described.start_ms)
        == (prepared.producer_id, prepared.producer_epoch, prepared.start_ms)
    )


def _partitions(prepared: PreparedTransaction, known: Mapping[str, TopicInfo]) -> list[TopicPartition]:
    """Return where it wrote, its group's offsets among them; not to a topic that is not the same any more."""
    return [
        partition
        for partition in prepared.partitions
        if partition.topic == OFFSETS_TOPIC
        or (partition.topic in known and known[partition.topic].topic_id == prepared.topic_ids.get(partition.topic))
    ]


def _open_in(
    client: MarkerClient, prepared: PreparedTransaction, producer: tuple[int, int]
) -> dict[TopicPartition, int]:
    """Return where it is still open; nothing where brokers don't let this user look."""
    found: dict[TopicPartition, int] = {}
    for partition in _partitions(prepared, client.topics(prepared.topic_ids)):
        try:
            found |= client.open_in([partition], producer)
        except ConfigurationError as error:
            log.info("whether %s is still open in %s can't be seen: %s", prepared.name, partition, error)
    return found


def _write(
    client: MarkerClient, prepared: PreparedTransaction, open_in: dict[TopicPartition, int], producer: tuple[int, int]
) -> None:
    where = ", ".join(str(partition) for partition in open_in)
    try:
        client.write_commit_markers(open_in, producer)
    except ConfigurationError as error:
        raise ConfigurationError(
            f"transaction {prepared.name} is committed, but the brokers left it open in {where}, where readers see "
            "nothing of it and of what follows. Writing the missing markers is not allowed to this user: allow it "
            f"ClusterAction on the cluster, and start the job again ({error})"
        ) from error
    log.warning(
        "transaction %s is committed, but the brokers had left it open in %s, as they do where a partition has no "
        "leader at that moment: the missing markers are written now",
        prepared.name,
        where,
    )
