"""Which missing markers are written, and when none is: brokers that say what the test wants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import pytest

from twopc.errors import ConfigurationError, Unavailable
from twopc.kafka.clients.control_client import OpenTransaction, TopicInfo
from twopc.kafka.clients.described_transaction import BrokerState, Described
from twopc.kafka.topic_partition import TopicPartition
from twopc.kafka.transactions.committable import PreparedTransaction
from twopc.kafka.transactions.missing_markers import OFFSETS_TOPIC, close_committed
from twopc.protocol.ids import CheckpointId, SubtaskIndex

OUT = TopicPartition("out", 1)
OFFSETS = TopicPartition(OFFSETS_TOPIC, 17)
PREPARED = PreparedTransaction(
    transactional_id="orders-1-0-0",
    checkpoint_id=CheckpointId(7),
    subtask=SubtaskIndex(0),
    producer_id=15,
    producer_epoch=2,
    start_ms=1_000,
    timeout_ms=60_000,
    partitions=(OFFSETS, OUT),
    topic_ids={"out": "id-of-out"},
    group="orders",
    positions=(),
)
ENDED = Described(BrokerState.COMPLETE_COMMIT, 15, 2, 1_000)


@dataclass
class FakeBrokers:
    """What they say in turn of the transaction, the last for ever; and where it is open until its marker comes."""

    says: list[Described | None] = field(default_factory=lambda: [ENDED])
    open: dict[TopicPartition, int] = field(default_factory=lambda: {OUT: 4})
    out_id: str = "id-of-out"
    look_error: Exception | None = None
    write_error: Exception | None = None
    written: dict[TopicPartition, int] = field(default_factory=dict)

    def describe_transaction(self, transactional_id: str) -> OpenTransaction | None:
        assert transactional_id == PREPARED.transactional_id
        described = self.says.pop(0) if len(self.says) > 1 else self.says[0]
        return None if described is None else OpenTransaction(described, 60_000, frozenset())

    def topics(self, names: Iterable[str]) -> dict[str, TopicInfo]:
        return {name: TopicInfo(self.out_id, 2) for name in names}

    def open_in(self, partitions: Iterable[TopicPartition], producer: tuple[int, int]) -> dict[TopicPartition, int]:
        if self.look_error is not None:
            raise self.look_error
        return {each: self.open[each] for each in partitions if each in self.open and producer == (15, 2)}

    def write_commit_markers(self, open_in: Mapping[TopicPartition, int], producer: tuple[int, int]) -> None:
        if self.write_error is not None:
            raise self.write_error
        self.written |= open_in
        for each in open_in:
            del self.open[each]


def close(brokers: FakeBrokers) -> dict[TopicPartition, int]:
    close_committed(brokers, [PREPARED.to_committable()], 0.01)
    return brokers.written


def test_a_partition_where_a_committed_transaction_is_still_open_gets_its_marker() -> None:
    assert close(FakeBrokers()) == {OUT: 4}


def test_the_partition_of_the_groups_offsets_is_looked_at_too() -> None:
    assert close(FakeBrokers(open={OFFSETS: 0})) == {OFFSETS: 0}


@pytest.mark.parametrize(
    "said",
    [
        None,
        replace(ENDED, state=BrokerState.ONGOING),
        replace(ENDED, state=BrokerState.COMPLETE_ABORT),
        replace(ENDED, start_ms=2_000),
        replace(ENDED, producer_epoch=3),
        replace(ENDED, state=BrokerState.PREPARE_COMMIT),
    ],
)
def test_nothing_is_written_unless_the_coordinator_says_that_this_very_transaction_has_been_committed(
    said: Described | None,
) -> None:
    assert close(FakeBrokers(says=[said])) == {}


def test_nothing_is_written_for_a_producer_that_began_another_one_meanwhile() -> None:
    assert close(FakeBrokers(says=[ENDED, replace(ENDED, state=BrokerState.ONGOING, start_ms=2_000)])) == {}


def test_nothing_is_written_to_a_topic_that_was_created_again() -> None:
    assert close(FakeBrokers(out_id="another")) == {}


def test_who_may_not_look_goes_on() -> None:
    assert close(FakeBrokers(look_error=ConfigurationError("TopicAuthorizationFailed"))) == {}


def test_who_may_not_write_the_marker_is_told_what_readers_miss_and_what_to_allow() -> None:
    with pytest.raises(ConfigurationError, match=r"orders-1-0-0@7.*out\[1\].*ClusterAction"):
        close(FakeBrokers(write_error=ConfigurationError("ClusterAuthorizationFailed")))


def test_brokers_that_do_not_answer_are_named() -> None:
    with pytest.raises(Unavailable, match=r"orders-1-0-0@7.*no leader"):
        close(FakeBrokers(look_error=Unavailable("no leader")))
