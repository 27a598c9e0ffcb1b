"""Which process a node's folder stands for, and that no other is ever touched."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from twopc.testing.broker_node import BrokerNode


@pytest.fixture
def node(tmp_path: Path) -> BrokerNode:
    node = BrokerNode(tmp_path)
    node.configure("")
    return node


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """A process that is no Kafka of ours."""
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as process:
        yield process
        process.kill()


def script(tmp_path: Path, body: str) -> list[str]:
    """A stand-in for java."""
    path = tmp_path / "java"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return [str(path)]


def test_a_spawned_process_is_found_again_by_whoever_opens_the_folder(node: BrokerNode, tmp_path: Path) -> None:
    node.spawn(script(tmp_path, "exec sleep 60"))
    try:
        assert BrokerNode(tmp_path).pid == node.pid is not None
    finally:
        node.kill()
    assert node.pid is None


def test_it_is_ended_in_order_and_by_force_if_need_be(
    node: BrokerNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("twopc.testing.broker_node.STOP_TIMEOUT_S", 0.2)
    node.spawn(script(tmp_path, "trap '' TERM; echo deaf; while :; do sleep 0.05; done"))
    while "deaf" not in node.log.read_text():
        pass
    node.terminate()
    assert node.pid is None


@pytest.mark.parametrize("age_s", [-3_600.0, 3_600.0])
def test_a_process_that_got_the_same_id_later_is_left_alone(
    node: BrokerNode, bystander: subprocess.Popen[bytes], tmp_path: Path, age_s: float
) -> None:
    started = psutil.Process(bystander.pid).create_time()
    (tmp_path / "pid").write_text(f"{bystander.pid} {started + age_s}\n")
    assert node.pid is None
    node.terminate()
    node.kill()
    assert bystander.poll() is None


@pytest.mark.parametrize("text", ["", "no number", "17", "99999999 1.0"])
def test_a_pid_file_that_names_no_process_means_not_running(node: BrokerNode, tmp_path: Path, text: str) -> None:
    (tmp_path / "pid").write_text(text)
    assert node.pid is None


def test_the_complaint_is_the_line_that_tells_why(node: BrokerNode) -> None:
    node.log.write_text("2026 INFO Starting\n2026 ERROR BrokerServer - Address already in use\n2026 INFO Bye\n")
    assert node.complaint() == "2026 ERROR BrokerServer - Address already in use"


def test_the_complaint_is_of_this_start_and_of_no_earlier_one(node: BrokerNode, tmp_path: Path) -> None:
    node.log.write_text("2026 ERROR from an earlier start\n")
    node.spawn(script(tmp_path, "echo 2026 ERROR of this start; exit 1"))
    while node.pid is not None:
        pass
    assert node.complaint() == "2026 ERROR of this start"
