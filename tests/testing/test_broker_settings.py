"""The settings on which promises rest, and how nodes find each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from twopc.config import NO_TIMEOUT_MS
from twopc.testing.broker_settings import BUSY, NodePorts, server_properties


def settings(node_id: int, nodes: int) -> dict[str, str]:
    ports = [NodePorts(clients=9_000 + index, controller=9_100 + index) for index in range(1, nodes + 1)]
    lines = server_properties(node_id, ports, Path("data")).splitlines()
    return dict(line.split("=", 1) for line in lines)


def test_a_transaction_may_stay_open_for_ever() -> None:
    assert settings(1, 1)["transaction.max.timeout.ms"] == str(NO_TIMEOUT_MS)


def test_records_with_old_timestamps_are_kept() -> None:
    assert settings(1, 1)["log.retention.ms"] == "-1"


def test_a_topic_that_is_not_there_stays_not_there() -> None:
    assert settings(1, 1)["auto.create.topics.enable"] == "false"


@pytest.mark.parametrize(("nodes", "replicas", "in_sync"), [(1, "1", "1"), (2, "2", "1"), (3, "3", "2"), (5, "3", "2")])
def test_as_many_replicas_as_nodes_up_to_three(nodes: int, replicas: str, in_sync: str) -> None:
    found = settings(1, nodes)
    for topic in ("transaction.state.log", "offsets.topic"):
        assert found[f"{topic}.replication.factor"] == replicas
    assert found["transaction.state.log.min.isr"] == in_sync


def test_three_nodes_vote_and_the_fourth_only_serves_clients() -> None:
    voters = "1@127.0.0.1:9101,2@127.0.0.1:9102,3@127.0.0.1:9103"
    assert {settings(node, 4)["controller.quorum.voters"] for node in (1, 2, 3, 4)} == {voters}
    assert settings(3, 4)["process.roles"] == "broker,controller"
    assert settings(4, 4)["process.roles"] == "broker"
    assert "CONTROLLER://" not in settings(4, 4)["listeners"]


def test_of_two_nodes_one_votes_so_that_the_other_may_be_away() -> None:
    assert settings(2, 2)["controller.quorum.voters"] == "1@127.0.0.1:9101"


def test_what_a_broker_needs_of_its_own_goes_before_what_all_have() -> None:
    lines = server_properties(1, [NodePorts(9_000, 9_100)], Path("data"), BUSY).splitlines()
    assert [line for line in lines if line.startswith("broker.session.timeout.ms")] == [
        "broker.session.timeout.ms=9000"
    ]
