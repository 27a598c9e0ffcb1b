"""A real cluster that says, now and then, that it has no brokers: what is forgotten then, and how a sink is saved."""

from __future__ import annotations

import gc
import time
import warnings
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

from tests.kafka.kit import DrivenSink, values_of
from twopc.errors import CheckpointDeclined, Unavailable
from twopc.testing import broker_settings
from twopc.testing.local_broker import LocalBroker
from twopc.testing.topics import create_topic

pytestmark = pytest.mark.broker

SECONDS = 180.0
FENCED = {"broker.session.timeout.ms": 1000, "broker.heartbeat.interval.ms": 4000}
"""A broker that is heard of less often than it must be is no broker for three seconds of every four."""


@pytest.fixture(autouse=True)
def _sockets_collected(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """kafka-python leaves the sockets of refused connections to the garbage collector; what was logged holds them."""
    yield
    for phase in ("setup", "call"):
        caplog.get_records(phase).clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.mark.proof
def test_a_sink_whose_producers_forgot_all_brokers_fails_its_attempt_and_the_next_one_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("twopc.kafka.clients.client_health.CHECK_INTERVAL_SECONDS", 0.5)
    monkeypatch.setattr("twopc.kafka.output.tracked_producer.ALIVE_CHECK_SECONDS", 0.5)
    with LocalBroker(tmp_path, light=True) as broker:
        create_topic(broker.bootstrap_servers, "out")
        sink = DrivenSink(
            broker.bootstrap_servers, "job", "out", "out", properties={"topic.metadata.refresh.interval.ms": 500}
        )
        sink.start_attempt()
        sink.write(b"before")
        sink.complete(sink.pre_commit(1))
        with monkeypatch.context() as fenced:
            for name, value in FENCED.items():
                fenced.setitem(broker_settings._LONE_VOTER, name, value)
            broker.restart()
        with pytest.raises(Unavailable, match=r"(?i)starting again with new clients"):
            write_until_it_fails(sink)
        sink.die()
        broker.restart()
        sink.start_attempt()
        sink.write(b"after")
        sink.complete(sink.pre_commit(9))
        assert values_of(broker.bootstrap_servers, "out") == [b"before", b"after"]
        sink.die()


def write_until_it_fails(sink: DrivenSink) -> None:
    """Go from checkpoint to checkpoint: nothing is lost before the client was asked in a moment without brokers."""
    deadline = time.monotonic() + SECONDS
    for checkpoint in count(2):
        assert time.monotonic() < deadline, f"the sink went on for {SECONDS} s"
        with suppress(CheckpointDeclined):
            sink.write(b"lost")
            sink.pre_commit(checkpoint)
