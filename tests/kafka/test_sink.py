from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from tests.kafka.kit import INPUT_ID, DrivenSink, FakeRow, batch_of, values_of
from twopc.errors import ConfigurationError, Fenced, TransactionLost, TwoPhaseCommitError, UserCodeError
from twopc.kafka.positions.partition_position import PartitionPosition
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.protocol.ids import CheckpointId
from twopc.record import Batch, Record, RecordsRefused
from twopc.serde import Json, Serde
from twopc.sink import PreCommit
from twopc.testing.topics import create_topic, delete_topic, read_topic

pytestmark = [pytest.mark.broker, pytest.mark.usefixtures("record_path")]

COMPRESSED = {"compression.type": "gzip"}
INCOMPRESSIBLE = Random(1).randbytes(5_000)
"""How small it becomes is not known before the broker has it."""


def test_a_reader_sees_nothing_before_the_commit_and_everything_after(
    driven: DrivenSink, servers: str, out: str
) -> None:
    driven.write(b"a", b"b")
    committable = driven.pre_commit(1)
    assert values_of(servers, out) == []
    driven.commit(committable)
    assert values_of(servers, out) == [b"a", b"b"]


def test_committing_twice_is_committing_once(driven: DrivenSink, servers: str, out: str) -> None:
    driven.write(b"a")
    committable = driven.pre_commit(1)
    driven.commit(committable)
    driven.commit(committable)
    assert values_of(servers, out) == [b"a"]


def test_a_live_commit_into_a_recreated_topic_is_lost_by_the_topics_name(
    driven: DrivenSink, servers: str, out: str
) -> None:
    driven.write(b"a")
    committable = driven.pre_commit(1)
    delete_topic(servers, out)
    create_topic(servers, out)
    with pytest.raises(TransactionLost, match=f"topic {out} was deleted and created again"):
        driven.commit(committable)


def test_an_empty_interval_makes_no_committable_and_leaves_the_transaction_open(
    driven: DrivenSink, servers: str, out: str
) -> None:
    assert driven.writer.pre_commit(PreCommit(CheckpointId(1), (), None)) is None
    driven.write(b"a")
    driven.commit(driven.pre_commit(2))
    assert values_of(servers, out) == [b"a"]


def test_positions_that_moved_without_output_are_carried_once_by_a_transaction_of_their_own(
    driven: DrivenSink,
) -> None:
    first = driven.pre_commit(1, position=5)
    where = PartitionPosition(TopicPartition(driven.input_topic, 0), INPUT_ID, Position(5)).to_split_position()
    assert driven.writer.pre_commit(PreCommit(CheckpointId(2), (where,), driven.group)) is None
    driven.complete(first)


def test_the_transaction_of_an_aborted_checkpoint_is_committed_with_the_next_completed_one(
    driven: DrivenSink, servers: str, out: str
) -> None:
    driven.write(b"a")
    aborted = driven.pre_commit(1)
    driven.write(b"b")
    completed = driven.pre_commit(2)
    for committable in (aborted, completed):
        driven.commit(committable)
    assert values_of(servers, out) == [b"a", b"b"]


def test_more_checkpoints_may_abort_in_a_row_than_there_are_slots_at_first(
    driven: DrivenSink, servers: str, out: str
) -> None:
    committables = []
    for checkpoint in range(1, 7):
        driven.write(b"%d" % checkpoint)
        committables.append(driven.pre_commit(checkpoint))
    for committable in committables:
        driven.commit(committable)
    assert values_of(servers, out) == [b"1", b"2", b"3", b"4", b"5", b"6"]


def test_aborting_leaves_nothing_of_the_open_transaction_and_the_pre_committed_one_whole(
    driven: DrivenSink, servers: str, out: str
) -> None:
    driven.write(b"a")
    committable = driven.pre_commit(1)
    driven.write(b"never")
    driven.writer.abort()
    driven.commit(committable)
    assert values_of(servers, out) == [b"a"]


def test_key_timestamp_and_headers_are_kept(driven: DrivenSink, servers: str, out: str) -> None:
    rows = [
        FakeRow(0, b"v", b"k", (1, 1_700_000_000_000), (("h", b"1"), ("none", None))),
        FakeRow(1, None, None, (1, 1_700_000_000_001)),
    ]
    driven.writer.write(Batch(rows, [row.payload for row in rows]))
    driven.commit(driven.pre_commit(1))
    first, second = read_topic(servers, out)
    assert (first.key, first.value, first.timestamp) == (b"k", b"v", 1_700_000_000_000)
    assert first.headers == (("h", b"1"), ("none", None))
    assert (second.key, second.value, second.timestamp, second.headers) == (None, None, 1_700_000_000_001, ())


def test_a_record_that_the_broker_refuses_fails_the_pre_commit(
    servers: str, job: str, new_topic: Callable[..., str]
) -> None:
    small = new_topic(max_message_bytes="1000")
    driven = DrivenSink(servers, job, small, input_topic=small, properties=COMPRESSED)
    driven.start_attempt()
    try:
        driven.write(b"ok", INCOMPRESSIBLE)
        with pytest.raises(UserCodeError, match=rf"{small}.*too large"):
            driven.pre_commit(1)
    finally:
        driven.die()
    assert values_of(servers, small) == []


def test_a_record_that_is_too_large_for_the_producer_is_named(driven: DrivenSink) -> None:
    with pytest.raises(RecordsRefused, match=r"input\[0\]@1: .*too large"):
        driven.write(b"ok", b"x" * 2_000_000)


def test_a_value_that_cannot_be_encoded_is_named(servers: str, job: str, out: str) -> None:
    driven = DrivenSink(servers, job, out, input_topic=out, value=Json())
    driven.start_attempt()
    try:
        with pytest.raises(RecordsRefused, match=r"input\[0\]@1: encoding a value"):
            driven.write({"n": 1}, {1, 2})
    finally:
        driven.die()


def test_a_value_that_is_no_bytes_is_named(driven: DrivenSink) -> None:
    with pytest.raises(RecordsRefused, match=r"input\[0\]@2: producing to topic .*value=Bytes\(\)"):
        driven.write(b"a", b"b", 3)


def test_a_missing_output_topic_is_refused_before_anything_starts(servers: str, job: str) -> None:
    driven = DrivenSink(servers, job, "nowhere", input_topic="nowhere")
    with pytest.raises(
        ConfigurationError, match=r"output topic 'nowhere' isn't there: create it \(twopc topics create"
    ):
        driven.start_attempt()


def test_a_full_queue_holds_the_writer_back_and_loses_nothing(servers: str, job: str, out: str) -> None:
    properties = {"queue.buffering.max.messages": "10"}
    driven = DrivenSink(servers, job, out, input_topic=out, properties=properties)
    driven.start_attempt()
    values = [b"%d" % number for number in range(500)]
    try:
        assert driven.write(*values) == 500
        driven.commit(driven.pre_commit(1))
    finally:
        driven.die()
    assert values_of(servers, out) == values


@pytest.fixture
def routed(servers: str, job: str, new_topic: Callable[..., str]) -> Iterator[tuple[DrivenSink, str, str]]:
    """Return a sink that chooses between two topics by the value's first letter, and the topics."""
    left, right = new_topic(), new_topic()

    def topic_of(record: Record) -> str:
        return {b"l": left, b"r": right}.get(record.value[:1], "nowhere")

    driven = DrivenSink(servers, job, topic_of, input_topic=left)
    driven.start_attempt()
    yield driven, left, right
    driven.die()


def test_each_record_goes_to_the_topic_that_the_function_returns(
    routed: tuple[DrivenSink, str, str], servers: str
) -> None:
    driven, left, right = routed
    driven.write(b"l1", b"r1", b"l2", b"r2")
    driven.commit(driven.pre_commit(1))
    assert values_of(servers, left) == [b"l1", b"l2"]
    assert values_of(servers, right) == [b"r1", b"r2"]


def test_a_topic_that_the_function_invents_is_an_error_of_the_record(
    routed: tuple[DrivenSink, str, str], servers: str
) -> None:
    driven, left, _ = routed
    said = r"input\[0\]@1: the sink's topic function failed: TopicsMissing: output topic 'nowhere' isn't there"
    with pytest.raises(RecordsRefused, match=said):
        driven.write(b"l1", b"?", b"l2")
    driven.commit(driven.pre_commit(1))
    assert values_of(servers, left) == [b"l1", b"l2"], "the others are written"


def test_a_topic_function_that_raises_is_an_error_that_names_the_record(routed: tuple[DrivenSink, str, str]) -> None:
    driven, *_ = routed
    with pytest.raises(RecordsRefused, match=r"input\[0\]@1: the sink's topic function"):
        driven.write(b"l1", None)


@pytest.mark.parametrize("guarantee", ["at_least_once", "none"])
def test_without_transactions_records_are_visible_without_a_commit(
    servers: str, job: str, out: str, guarantee: str
) -> None:
    driven = DrivenSink(servers, job, out, input_topic=out, delivery_guarantee=guarantee)
    driven.start_attempt()
    driven.write(b"a")
    assert driven.writer.pre_commit(PreCommit(CheckpointId(1), (), None)) is None
    driven.die()
    assert values_of(servers, out) == [b"a"]


def test_at_least_once_fails_the_checkpoint_if_a_record_was_not_delivered(
    servers: str, job: str, new_topic: Callable[..., str]
) -> None:
    small = new_topic(max_message_bytes="1000")
    driven = DrivenSink(
        servers, job, small, input_topic=small, delivery_guarantee="at_least_once", properties=COMPRESSED
    )
    driven.start_attempt()
    driven.write(INCOMPRESSIBLE)
    with pytest.raises(TwoPhaseCommitError, match="too large"):
        driven.writer.pre_commit(PreCommit(CheckpointId(1), (), None))
    driven.die()


def test_a_transaction_timeout_longer_than_the_brokers_is_refused_with_both_names(servers: str, job: str) -> None:
    driven = DrivenSink(servers, job, "any", input_topic="any")
    driven.settings = replace(driven.settings, transaction_timeout_ms=10_000)
    with pytest.raises(ConfigurationError, match=r"(?s)transaction_timeout_ms.*transaction\.max\.timeout\.ms"):
        driven.start_attempt()


def test_an_unknown_property_is_refused_on_the_driver(servers: str, job: str, out: str) -> None:
    driven = DrivenSink(servers, job, out, input_topic=out, properties={"no.such": "1"})
    with pytest.raises(ConfigurationError, match=r"no\.such"):
        driven.start_attempt()


def test_brokers_that_do_not_answer_are_named(job: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twopc.kafka.clients.reachability.await_reachable.__defaults__", (0.1,))
    driven = DrivenSink("127.0.0.1:1", job, "any", input_topic="any")
    with pytest.raises(TwoPhaseCommitError, match=r"127\.0\.0\.1:1 .*correct bootstrap_servers"):
        driven.start_attempt()


class Upper(Serde):
    """A serde of a user's own."""

    def deserialize(self, data: bytes | None) -> Any:
        return data

    def serialize(self, value: Any) -> bytes | None:
        return None if value is None else bytes(value).upper()


def test_a_serde_of_the_users_own_encodes_the_values(servers: str, job: str, out: str) -> None:
    driven = DrivenSink(servers, job, out, input_topic=out, value=Upper())
    driven.start_attempt()
    driven.write(b"a", None)
    driven.commit(driven.pre_commit(1))
    driven.die()
    assert values_of(servers, out) == [b"A", None]


def test_a_new_attempt_fences_the_producers_of_the_one_before(driven: DrivenSink) -> None:
    zombie = driven.writer
    driven.start_attempt()

    def go_on() -> None:
        zombie.write(batch_of(b"late"))
        zombie.pre_commit(PreCommit(CheckpointId(9), (), None))

    with pytest.raises(Fenced, match="transactional_id_prefix"):
        go_on()
    zombie.close()


def test_the_transactional_id_is_the_given_prefix_the_subtask_and_the_slot(servers: str, job: str, out: str) -> None:
    driven = DrivenSink(servers, job, out, input_topic=out, transactional_id_prefix=f"{job}-given")
    driven.start_attempt()
    driven.write(b"a")
    assert driven.pre_commit(1).name == f"{job}-given-1-0-0@1"
    driven.die()
