"""Questions to a real broker, and what becomes of them where the connection, or the broker, is lost."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import pytest

from tests.kafka.kit import DrivenSink
from twopc.errors import ConfigurationError, Unavailable
from twopc.faults.kafka_proxy import Api, Fate, KafkaProxy, Rule
from twopc.faults.tcp_proxy import Direction
from twopc.kafka.clients.control_client import ControlClient
from twopc.kafka.clients.described_transaction import BrokerState
from twopc.kafka.clients.retry import call_with_retry
from twopc.kafka.clients.topic_client import TopicClient
from twopc.kafka.topics.subtask_client import SubtaskClient
from twopc.kafka.transactions.committable import PreparedTransaction
from twopc.protocol.ids import CheckpointId
from twopc.testing.local_broker import LocalBroker
from twopc.testing.topics import create_topic, delete_topic

# kafka-python leaves the socket of every connection that failed to the garbage collector.
pytestmark = [pytest.mark.broker, pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")]

SECONDS = 60.0


@pytest.fixture
def client(servers: str) -> Iterator[ControlClient]:
    with ControlClient(servers, {}) as made:
        yield made


def test_an_open_transaction_is_described(client: ControlClient, driven: DrivenSink) -> None:
    driven.write(b"a record")
    prepared = PreparedTransaction.from_committable(driven.pre_commit(1, position=1))
    found = client.describe_transaction(prepared.transactional_id)
    assert found is not None
    assert found.described.state is BrokerState.ONGOING
    assert found.partitions == frozenset(prepared.partitions)


def test_nothing_is_known_of_an_id_that_was_never_used(client: ControlClient) -> None:
    assert client.describe_transaction(f"never-{uuid4().hex}") is None


def test_only_topics_that_exist_are_found_and_none_is_created_by_asking(
    client: ControlClient, new_topic: Callable[..., str]
) -> None:
    there, missing = new_topic(3), f"missing-{uuid4().hex}"
    for _ in range(2):
        found = client.topics([there, missing])
        assert {name: topic.partitions for name, topic in found.items()} == {there: 3}


def test_threads_that_ask_at_once_get_each_their_own_answer(
    client: ControlClient, new_topic: Callable[..., str]
) -> None:
    names = {new_topic(partitions): partitions for partitions in (1, 2, 3)}
    with ThreadPoolExecutor(len(names)) as executor:
        answers = list(executor.map(lambda name: client.topics([name]), [*names] * 20))
    assert [(name, found.partitions) for answer in answers for name, found in answer.items()] == [*names.items()] * 20


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LocalBroker, KafkaProxy]]:
    """Return a broker of one's own and the proxy in front of it, with the topic "there"."""
    made = LocalBroker(tmp_path_factory.mktemp("broker"), proxied=True, light=True)
    with KafkaProxy(made.proxy_routes[0].listens, made.proxy_routes[0].advertised) as proxy, made as running:
        create_topic(running.bootstrap_servers, "there", 2)
        yield running, proxy


@pytest.fixture
def proxy(proxied: tuple[LocalBroker, KafkaProxy]) -> Iterator[KafkaProxy]:
    """Return the proxy, which has no rules before and after a test."""
    proxied[1].clear()
    yield proxied[1]
    proxied[1].clear()


@pytest.fixture
def through(proxied: tuple[LocalBroker, KafkaProxy], proxy: KafkaProxy) -> Iterator[SubtaskClient]:
    """Return a client that has asked once, through the proxy; what it leaves is collected before another test."""
    with SubtaskClient(proxied[0].proxied_servers, {}) as made:
        assert set(call_with_retry(lambda: made.topics(["there"]), SECONDS)) == {"there"}
        yield made
    gc.collect()


def test_a_connection_that_broke_is_made_anew_for_the_next_question(through: SubtaskClient, proxy: KafkaProxy) -> None:
    proxy.drop_connections()
    assert set(call_with_retry(lambda: through.topics(["there"]), SECONDS)) == {"there"}


def test_a_question_whose_answer_is_lost_has_no_outcome(through: SubtaskClient, proxy: KafkaProxy) -> None:
    proxy.add(Rule(Api.DESCRIBE_TRANSACTIONS, Direction.TO_CLIENT, Fate.DROP))
    with pytest.raises(Unavailable, match="gave no answer"):
        through.describe_transaction("unknown")
    assert call_with_retry(lambda: through.describe_transaction("unknown"), SECONDS) is None


@pytest.mark.proof
def test_a_broker_that_is_gone_is_unavailable_and_found_again_when_it_is_back(
    through: SubtaskClient, proxied: tuple[LocalBroker, KafkaProxy]
) -> None:
    broker, _ = proxied
    broker.kill()
    with pytest.raises(Unavailable):
        call_with_retry(lambda: through.topics(["there"]), 1.0)
    broker.start()
    assert set(call_with_retry(lambda: through.topics(["there"]), SECONDS)) == {"there"}
    assert call_with_retry(lambda: through.describe_transaction("unknown"), SECONDS) is None


@pytest.mark.proof
@pytest.mark.timeout(720)
def test_every_leader_of_an_input_topic_is_asked_whether_it_is_still_the_same(tmp_path: Path) -> None:
    with (
        LocalBroker(tmp_path, brokers=3, light=True) as brokers,
        SubtaskClient(brokers.bootstrap_servers, {}) as client,
    ):
        with TopicClient(brokers.bootstrap_servers, {}) as maker:
            # Unlike `create_topic`, it waits for all brokers: of the three any may be asked.
            maker.ensure_topic("in", 3)
        before = client.topics(["in"])["in"]
        client.identity.note_input("in", before.topic_id, range(3))
        client.identity.check(CheckpointId(1))
        assert len(set(before.leaders)) == 3
        delete_topic(brokers.bootstrap_servers, "in")
        create_topic(brokers.bootstrap_servers, "in", 3)
        # That it is gone says a leader that has heard of the one, and for two seconds not of the other.
        with pytest.raises(ConfigurationError, match=rf"its id was {before.topic_id}(, and is |\))"):
            client.identity.check(CheckpointId(2))
