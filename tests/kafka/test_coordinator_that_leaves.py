"""A cluster of three that one broker leaves, the coordinator of the job's group: what waits for it without end."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from tests.kafka.kit import DrivenSink, eventually, values_of
from twopc.errors import Unavailable
from twopc.kafka.output import tracked_producer
from twopc.testing.local_broker import LocalBroker
from twopc.testing.topics import create_topic

pytestmark = pytest.mark.broker

SECONDS = 60.0
ALL_SLOTS = 6


@pytest.mark.proof
def test_a_sink_whose_group_lost_its_coordinator_fails_its_attempt_in_time_and_the_next_one_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LocalBroker(tmp_path, brokers=3, light=True) as brokers:
        servers = brokers.bootstrap_servers
        for topic in ("in", "out"):
            create_topic(servers, topic)
        sink = DrivenSink(servers, "job", "out", "in")
        sink.start_attempt()
        written = [completed(sink, checkpoint) for checkpoint in range(1, ALL_SLOTS)]
        brokers.nodes[coordinator_of(servers, sink.group) - 1].kill()
        await_word_of_its_leaving(sink)
        sink.write(b"aborted")
        with monkeypatch.context() as patched:
            patched.setattr(tracked_producer, "POSITIONS_SECONDS", 5.0)
            with pytest.raises(Unavailable, match="coordinator of the consumer group"):
                sink.pre_commit(ALL_SLOTS, ALL_SLOTS)
        with pytest.raises(Unavailable, match="already in progress"):
            sink.writer.abort()
        sink.die()
        sink.start_attempt()
        written.append(completed(sink, ALL_SLOTS + 1))
        assert values_of(servers, "out") == written
        sink.die()


def completed(sink: DrivenSink, checkpoint: int) -> bytes:
    """Write a record in a checkpoint of its own; return its value."""
    value = b"%d" % checkpoint
    sink.write(value)
    sink.complete(sink.pre_commit(checkpoint, checkpoint))
    return value


def coordinator_of(servers: str, group: str) -> int:
    """The broker's id."""
    client = AdminClient({"bootstrap.servers": servers})
    return int(client.describe_consumer_groups([group])[group].result(SECONDS).coordinator.id)


def await_word_of_its_leaving(sink: DrivenSink) -> None:
    """Wait until every producer has been told of two brokers only, and has let go of the third."""
    for slot in sink.writer._pool._slots:
        eventually(partial(knows_of_two, slot.producer.client))


def knows_of_two(client: Producer) -> bool:
    """Ask for the brokers, and say whether it is two; the client has heard the answer too."""
    return len(client.list_topics(timeout=SECONDS).brokers) == 2
