"""What the local broker promises beyond the contract of all brokers."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from twopc.errors import ConfigurationError, Unavailable
from twopc.testing.broker_node import BrokerNode
from twopc.testing.local_broker import LocalBroker
from twopc.testing.topics import create_topic, produce, read_topic


def test_a_folder_that_never_held_a_broker_opens_as_nothing(tmp_path: Path) -> None:
    assert LocalBroker.open(tmp_path) is None


@pytest.mark.parametrize("port", [0, -1, 65_536])
def test_a_port_that_cannot_be_is_refused(tmp_path: Path, port: int) -> None:
    with pytest.raises(ConfigurationError, match=f"but is {port}"):
        LocalBroker(tmp_path, port=port)


@pytest.fixture
def java(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What is run in place of Java: it says that it is out of luck, and ends."""
    folder = tmp_path_factory.mktemp("java")
    script = folder / "java"
    script.write_text("#!/bin/sh\necho 'ERROR out of luck'\n")
    script.chmod(0o755)
    monkeypatch.setattr("twopc.testing.local_broker.find_java", lambda: script)
    monkeypatch.setattr("twopc.testing.local_broker.ensure_jars", lambda: folder)
    return script


@pytest.mark.usefixtures("java")
def test_a_taken_port_is_named_before_anything_is_started(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigurationError, match=rf"port {port} is taken: choose another port \(--port\)"):
            LocalBroker(tmp_path, port=port).start()
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("java")
def test_a_folder_of_one_node_is_not_started_as_three(tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text('{"id": "x", "ports": [20000], "controllers": []}')
    with pytest.raises(ConfigurationError, match="holds a cluster of 1, not of 3"):
        LocalBroker(tmp_path, brokers=3).start()


@pytest.mark.usefixtures("java")
def test_a_kafka_that_ends_at_once_is_reported_with_its_own_words(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="Kafka ended while it started: ERROR out of luck"):
        LocalBroker(tmp_path / "data").start()


@pytest.mark.broker
@pytest.mark.proof
@pytest.mark.timeout(720)
def test_three_nodes_do_without_any_one_of_them(tmp_path: Path, topic: Callable[[], str]) -> None:
    with LocalBroker(tmp_path, brokers=3) as broker:
        name = topic()
        create_topic(broker.bootstrap_servers, name, 3)
        node: BrokerNode = broker.nodes[0]
        node.kill()
        produce(broker.bootstrap_servers, name, [b"%d" % number for number in range(30)])
        assert len(read_topic(broker.bootstrap_servers, name)) == 30
        broker.start_node(node)
        assert broker.running
