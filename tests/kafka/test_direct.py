"""Questions to a real broker over a connection of one's own, beside those over kafka-python's loop."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from kafka.protocol.metadata import CoordinatorType

from tests.kafka.kit import DrivenSink, eventually
from twopc.errors import ConfigurationError, Unavailable
from twopc.faults.kafka_proxy import Api, Fate, KafkaProxy, Rule
from twopc.faults.tcp_proxy import Direction
from twopc.kafka import direct
from twopc.kafka.committable import PreparedTransaction
from twopc.kafka.direct import DirectConnection, SubtaskClient
from twopc.kafka.retry import call_with_retry
from twopc.kafka.transaction_verdict import BrokerState
from twopc.kafka.wire import ControlClient
from twopc.protocol.ids import CheckpointId
from twopc.testing.local_broker import LocalBroker
from twopc.testing.topics import create_topic, delete_topic

# kafka-python leaves the socket of every connection that failed to the garbage collector.
pytestmark = [pytest.mark.broker, pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")]

SECONDS = 60.0


@pytest.fixture(params=[ControlClient, SubtaskClient])
def client(request: pytest.FixtureRequest, servers: str) -> Iterator[ControlClient]:
    """Return a client of either kind: they answer alike."""
    with request.param(servers, {}) as made:
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


def test_an_answer_that_comes_late_is_not_taken_for_that_to_the_next_question(
    through: SubtaskClient, proxy: KafkaProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert through.describe_transaction("unknown") is None
    monkeypatch.setattr(direct, "TIMEOUT_SECONDS", 0.2)
    proxy.drop_connections()
    with pytest.raises(Unavailable):
        through.topics(["there"])
    proxy.add(Rule(Api.DESCRIBE_TRANSACTIONS, Direction.TO_CLIENT, Fate.DELAY, delay_seconds=1.0))
    with pytest.raises(Unavailable, match="timed out"):
        through.describe_transaction("unknown")
    monkeypatch.setattr(direct, "TIMEOUT_SECONDS", SECONDS)
    assert through.describe_transaction("unknown") is None
    assert set(through.topics(["there"])) == {"there"}


def test_a_connection_that_broke_is_made_anew_for_the_next_question(through: SubtaskClient, proxy: KafkaProxy) -> None:
    proxy.drop_connections()
    with pytest.raises(Unavailable, match="gave no answer"):
        through.topics(["there"])
    assert set(call_with_retry(lambda: through.topics(["there"]), SECONDS)) == {"there"}


def test_a_question_whose_answer_is_lost_has_no_outcome(through: SubtaskClient, proxy: KafkaProxy) -> None:
    proxy.add(Rule(Api.DESCRIBE_TRANSACTIONS, Direction.TO_CLIENT, Fate.DROP))
    with pytest.raises(Unavailable, match="gave no answer"):
        through.describe_transaction("unknown")
    assert call_with_retry(lambda: through.describe_transaction("unknown"), SECONDS) is None


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


@pytest.mark.timeout(720)
def test_a_broker_that_does_not_answer_keeps_nobody_from_asking_another(tmp_path: Path) -> None:
    with (
        LocalBroker(tmp_path, brokers=3, light=True) as brokers,
        SubtaskClient(brokers.bootstrap_servers, {}) as client,
        ThreadPoolExecutor(1) as executor,
    ):
        names, stuck = by_coordinator(client), brokers.nodes[0].pid
        assert stuck is not None
        os.kill(stuck, signal.SIGSTOP)
        try:
            waiting = unanswered(partial(executor.submit, client.describe_transaction, names.pop(1)))
            for name in [*names.values()] * 20:
                assert client.describe_transaction(name) is None
            assert not waiting.done()
        finally:
            os.kill(stuck, signal.SIGCONT)
        # Whether it still coordinates is the cluster's affair.
        waiting.exception(SECONDS)


@pytest.mark.timeout(720)
def test_every_leader_of_an_input_topic_is_asked_whether_it_is_still_the_same(tmp_path: Path) -> None:
    with (
        LocalBroker(tmp_path, brokers=3, light=True) as brokers,
        SubtaskClient(brokers.bootstrap_servers, {}) as client,
    ):
        create_topic(brokers.bootstrap_servers, "in", 3)
        # The broker that is asked may not have heard of it yet.
        eventually(lambda: "in" in call_with_retry(lambda: client.topics(["in"]), SECONDS))
        before = client.topics(["in"])["in"]
        client.identity.note_input("in", before.topic_id, range(3))
        client.identity.check(CheckpointId(1))
        assert isinstance(client._brokers, DirectConnection)
        assert len(set(before.leaders)) == 3
        assert client._brokers._lines.keys() >= set(before.leaders)
        delete_topic(brokers.bootstrap_servers, "in")
        create_topic(brokers.bootstrap_servers, "in", 3)
        with pytest.raises(ConfigurationError, match=f"its id was {before.topic_id}, and is "):
            client.identity.check(CheckpointId(2))


def unanswered(ask: Callable[[], Future[Any]]) -> Future[Any]:
    """Return a question that gets no answer: while a process is being stopped, some of its threads still run."""
    while True:
        asked = ask()
        if not wait([asked], 0.5).done:
            return asked


def by_coordinator(client: SubtaskClient) -> dict[int, str]:
    """Return the name of a transaction for each of three brokers, by the number of the one that coordinates it."""
    found: dict[int, str] = {}
    for number in range(1_000):
        name = f"t-{number}"
        call_with_retry(lambda name=name: client.describe_transaction(name), SECONDS)  # type: ignore[misc]
        found[client._brokers.client()._manager.cluster.get_coordinator(name, CoordinatorType.TRANSACTION)] = name
        if len(found) == 3:
            return found
    raise AssertionError("one broker coordinates nothing")
