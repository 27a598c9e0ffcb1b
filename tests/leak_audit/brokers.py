"""The leaks on brokers: by ListTransactions, ListOffsets at both isolation levels, and DescribeProducers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

from kafka import KafkaAdminClient
from kafka.admin import OffsetSpec
from kafka.errors import KafkaError
from kafka.structs import TopicPartition

from tests.leak_audit.findings import Finding, Place, Problem
from twopc.errors import Unavailable
from twopc.kafka.clients.reachability import await_reachable

_CONNECT_SECONDS = 1.0
_REQUEST_TIMEOUT_MS = 10_000
_READ_UNCOMMITTED, _READ_COMMITTED = 0, 1
_DECIDED = frozenset({"Empty", "CompleteCommit", "CompleteAbort", "Dead"})


def findings_on_brokers(place: Place) -> list[Finding]:
    """Return what is open under the job's prefix, and what hides the end of its output."""
    servers = place.bootstrap_servers
    if not servers:
        return []
    try:
        await_reachable(servers, _CONNECT_SECONDS)
        admin = KafkaAdminClient(
            bootstrap_servers=servers.split(","),
            bootstrap_timeout_ms=_REQUEST_TIMEOUT_MS,
            request_timeout_ms=_REQUEST_TIMEOUT_MS,
        )
        with closing(admin):
            return list(_findings(admin, place))
    except (KafkaError, Unavailable) as error:
        return [Finding(Problem.SILENT_BROKERS, servers, f"{type(error).__name__}: {error}")]


def _findings(admin: KafkaAdminClient, place: Place) -> Iterator[Finding]:
    partitions, missing = _partitions(admin, place.topics)
    yield from (Finding(Problem.MISSING_TOPIC, topic, "unknown to the brokers") for topic in missing)
    before = _open_on_partitions(admin, partitions)
    listed = [row for rows in admin.list_transactions().values() for row in rows]
    yield from _open_transactions(listed, place.transactional_prefix)
    yield from _hanging(before, _open_on_partitions(admin, partitions), listed)
    yield from _hidden(admin, partitions)


def _partitions(admin: KafkaAdminClient, topics: Sequence[str]) -> tuple[list[TopicPartition], list[str]]:
    if not topics:
        return [], []
    described = {
        topic["name"]: topic["partitions"] for topic in admin.describe_topics(list(topics)) if not topic["error_code"]
    }
    found = [
        TopicPartition(topic, partition["partition_index"])
        for topic in sorted(described)
        for partition in described[topic]
    ]
    return sorted(found), sorted(set(topics) - set(described))


def _open_transactions(listed: Sequence[Any], prefix: str) -> Iterator[Finding]:
    for row in listed:
        state = row.state.value
        if row.transactional_id.startswith(f"{prefix}-") and state not in _DECIDED:
            yield Finding(Problem.OPEN_TRANSACTION, row.transactional_id, f"{state}, producer id {row.producer_id}")


def _open_on_partitions(
    admin: KafkaAdminClient, partitions: Sequence[TopicPartition]
) -> dict[tuple[TopicPartition, int], int]:
    """Return the first offset of each open transaction, by partition and producer id."""
    return {
        (partition, producer.producer_id): producer.current_transaction_start_offset
        for partition, state in admin.describe_producers(partitions).items()
        for producer in state.active_producers
        if producer.current_transaction_start_offset >= 0
    }


def _hanging(
    before: Mapping[tuple[TopicPartition, int], int],
    after: Mapping[tuple[TopicPartition, int], int],
    listed: Sequence[Any],
) -> Iterator[Finding]:
    """Yield what was open before the transactions were listed and still is, while no undecided one has its producer."""
    undecided = {row.producer_id for row in listed if row.state.value not in _DECIDED}
    for (partition, producer_id), offset in sorted(before.items()):
        if producer_id not in undecided and after.get((partition, producer_id)) == offset:
            yield Finding(
                Problem.HANGING_TRANSACTION, _name(partition), f"from offset {offset}, by producer id {producer_id}"
            )


def _hidden(admin: KafkaAdminClient, partitions: Sequence[TopicPartition]) -> Iterator[Finding]:
    if not partitions:
        return
    latest = dict.fromkeys(partitions, OffsetSpec.LATEST)
    stable = admin.list_partition_offsets(latest, _READ_COMMITTED)
    ends = admin.list_partition_offsets(latest, _READ_UNCOMMITTED)
    for partition in partitions:
        last, end = stable[partition].offset, ends[partition].offset
        if last != end:
            yield Finding(Problem.HIDDEN_RECORDS, _name(partition), f"last stable offset {last}, high watermark {end}")


def _name(partition: TopicPartition) -> str:
    return f"{partition.topic}-{partition.partition}"
