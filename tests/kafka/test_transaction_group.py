"""Kafka sinks of one job on one cluster: one transaction, whatever number of topics."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.kafka.kit import batch_of, settings, values_of
from twopc.context import JobContext, SubtaskContext
from twopc.kafka.sink import KafkaSink
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex
from twopc.protocol.messages import Complete
from twopc.sink import PreCommit, Sink
from twopc.transaction_group import GroupWriter, transaction_groups

pytestmark = pytest.mark.broker


def test_two_sinks_write_into_one_transaction_and_are_committed_as_one(
    servers: str, job: str, new_topic: Callable[..., str]
) -> None:
    good, bad = new_topic(), new_topic()
    sinks: dict[str, Sink] = {"good": KafkaSink(good), "bad": KafkaSink(bad)}
    context = SubtaskContext(job, AttemptId(1), 1, settings(servers), SubtaskIndex(0))
    [group] = transaction_groups(sinks, context)
    with group.open_committer(sinks, context) as committer:
        committer.claim()
        committer.abort_lingering()
    opened = GroupWriter.open(group, sinks, context)
    writer = opened.writer
    writer.begin()
    opened.write["good"](batch_of(b"g"))
    opened.write["bad"](batch_of(b"b"))
    opened.write["bad"](batch_of(None, "ü"))
    assert writer.bytes_written() == (1, 2)
    committable = writer.pre_commit(PreCommit(CheckpointId(1), (), None))
    assert committable is not None
    assert (values_of(servers, good), values_of(servers, bad)) == ([], [])
    writer.commit(committable, Complete(CheckpointId(1)))
    writer.close()
    assert (values_of(servers, good), values_of(servers, bad)) == ([b"g"], [b"b", None, "ü".encode()])


def test_sinks_without_transactions_or_with_a_prefix_of_their_own_are_groups_of_their_own(
    servers: str, job: str
) -> None:
    sinks: dict[str, Sink] = {
        "one": KafkaSink("a"),
        "plain": KafkaSink("b", delivery_guarantee="at_least_once"),
        "apart": KafkaSink("c", transactional_id_prefix=f"{job}-apart"),
        "two": KafkaSink("d"),
    }
    groups = transaction_groups(sinks, JobContext(job, AttemptId(1), 1, settings(servers)))
    assert [group.sinks for group in groups] == [("one", "two"), ("plain",), ("apart",)]
