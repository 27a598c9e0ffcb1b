"""What an open transaction hides of a partition, and what is said of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import pytest
from confluent_kafka import Producer

from tests.kafka.kit import eventually
from twopc.errors import Unavailable
from twopc.kafka.clients.control_client import ControlClient, OpenProducer, OpenTransaction
from twopc.kafka.clients.described_transaction import BrokerState, Described
from twopc.kafka.input.hidden_input import Hidden, hidden
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.testing.topics import create_topic

IN = TopicPartition("in", 0)
BEGAN_MS = 1_700_000_000_000
OURS, OTHER = OpenProducer(Position(100), 7, 0, 0), OpenProducer(Position(120), 8, 0, 0)
HIDDEN = Hidden(IN, Position(100), Position(161))


class Brokers:
    """Brokers that tell of `producers` with open transactions, and of those whose id is in `ids`."""

    def __init__(
        self, *producers: OpenProducer, ids: Mapping[int, str] | None = None, start_ms: int = BEGAN_MS
    ) -> None:
        self.producers, self.ids, self.start_ms = producers, ids or {}, start_ms

    def offsets(self, at: Mapping[TopicPartition, int]) -> dict[TopicPartition, Position]:
        return {each: Position(100 + each.partition) for each in at}

    def high_watermarks(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, Position]:
        return {each: Position(161) if each == IN else Position(100 + each.partition) for each in partitions}

    def open_producers(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, list[OpenProducer]]:
        return {each: sorted(self.producers) for each in partitions}

    def transactional_id(self, producer_id: int) -> str | None:
        return self.ids.get(producer_id)

    def describe_transaction(self, transactional_id: str) -> OpenTransaction:
        return OpenTransaction(Described(BrokerState.ONGOING, 7, 0, self.start_ms), 900_000, frozenset([IN]))


class Busy(Brokers):
    """Brokers of a partition that is written to between any two questions, by nobody with a transaction."""

    end = 0

    def offsets(self, at: Mapping[TopicPartition, int]) -> dict[TopicPartition, Position]:
        self.end += 10
        return {each: Position(self.end) for each in at}

    def high_watermarks(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, Position]:
        return self.offsets(dict.fromkeys(partitions, 0))


class Away(Brokers):
    def open_producers(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, list[OpenProducer]]:
        raise Unavailable("nobody answers")


def test_what_stands_between_the_readers_end_and_the_log_s_is_hidden() -> None:
    assert hidden(Brokers(), [TopicPartition("in", 1), IN]) == [HIDDEN]


def test_what_is_written_while_the_brokers_are_asked_is_not_hidden() -> None:
    assert hidden(Busy(), [IN]) == []


@pytest.mark.parametrize(
    ("brokers", "said"),
    [
        (
            Brokers(OTHER, OURS, ids={7: "billing-1"}),
            "the open transaction of 'billing-1' (producer 7), and 1 more behind it. It was begun at "
            "2023-11-14T22:13:20Z; "
            "its producer ends it, or the brokers 900 s later",
        ),
        (Brokers(OURS), "an open transaction of producer 7. No broker tells its transactional id"),
        (
            Brokers(OURS, ids={7: "billing-1"}, start_ms=-1),
            "kafka-transactions.sh --bootstrap-server ... abort --topic in --partition 0 --start-offset 100",
        ),
        (Brokers(), "a transaction that has just ended"),
        (Away(), "a transaction that is open there (the brokers don't say whose: nobody answers)"),
    ],
    ids=["all is known", "no id", "an id whose transaction is over: it hangs", "over", "no answer"],
)
def test_the_first_of_the_open_transactions_is_named_as_far_as_the_brokers_tell(brokers: Brokers, said: str) -> None:
    text = HIDDEN.named(brokers)
    assert text.startswith("in[0] can be read up to offset 100: what stands behind (61 offsets) is hidden by ")
    assert said in text


@pytest.mark.broker
def test_a_real_transaction_is_named_while_it_is_open(servers: str, topic: Callable[[], str]) -> None:
    name = topic()
    create_topic(servers, name, 1)
    with ControlClient(servers, {}) as client:
        producer = Producer({"bootstrap.servers": servers, "transactional.id": f"{name}-open"})
        producer.init_transactions(30)
        producer.begin_transaction()
        producer.produce(name, b"hidden")
        producer.flush(30)
        [found] = hidden(client, [TopicPartition(name, 0)])
        assert (found.end, found.log_end) == (0, 1)
        assert f"the open transaction of '{name}-open' (producer " in found.named(client)
        producer.commit_transaction(30)
        eventually(lambda: hidden(client, [TopicPartition(name, 0)]) == [])
