"""What a driver finds after a crash, and what it makes of it. Real processes are killed; nothing is simulated."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Target

from tests.kafka.kit import INPUT_ID, DrivenSink, eventually, values_of
from twopc.kafka.clients.client_config import producer_config, transactional_config
from twopc.kafka.clients.control_client import ControlClient
from twopc.kafka.clients.described_transaction import BrokerState
from twopc.kafka.output.tracked_producer import TrackedProducer
from twopc.kafka.topic_partition import TopicPartition
from twopc.kafka.transactions.committable import PreparedTransaction
from twopc.kafka.transactions.resume import is_lost
from twopc.protocol.codec import from_json
from twopc.protocol.facts import Committable
from twopc.sink import Outcome
from twopc.testing.topics import create_topic, delete_topic

pytestmark = pytest.mark.broker

VICTIM = """
import json, os, signal, sys
from tests.kafka.kit import DrivenSink
from twopc.protocol.codec import to_json
servers, job, out = sys.argv[1:]
driven = DrivenSink(servers, job, out, input_topic=out)
driven.start_attempt()
driven.write(b"pre-committed")
committable = driven.pre_commit(1, position=5)
driven.write(b"open")
driven.writer._txn.slot.producer.client.flush()
print(json.dumps(to_json(committable)), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def survivor(servers: str, job: str, out: str) -> DrivenSink:
    """Return the same job as the victim's, in this process, about to recover it as attempt 2."""
    driven = DrivenSink(servers, job, out, input_topic=out)
    driven.attempt = 2
    return driven


@pytest.fixture
def orphan(servers: str, job: str, out: str) -> Committable:
    """Return the committable of a process that was killed with one transaction pre-committed and one open."""
    done = subprocess.run(
        [sys.executable, "-c", VICTIM, servers, job, out], capture_output=True, timeout=240, check=False
    )
    assert done.returncode == -9, done.stderr.decode()
    return from_json(Committable, json.loads(done.stdout))


def test_of_a_killed_process_exactly_the_pre_committed_transaction_is_committed(
    survivor: DrivenSink, orphan: Committable, servers: str, out: str
) -> None:
    [settled] = survivor.recover([orphan])
    lingering = survivor.start_attempt()
    survivor.die()
    assert settled.outcome is Outcome.COMMITTED
    assert len(lingering) == 1
    assert values_of(servers, out) == [b"pre-committed"]


def test_recovering_twice_commits_once(survivor: DrivenSink, orphan: Committable, servers: str, out: str) -> None:
    [first] = survivor.recover([orphan])
    [second] = survivor.recover([orphan])
    assert (first.outcome, second.outcome) == (Outcome.COMMITTED, Outcome.ALREADY_COMMITTED)
    assert values_of(servers, out) == [b"pre-committed"]


def test_an_open_transaction_hides_later_output_until_it_is_aborted(
    survivor: DrivenSink, orphan: Committable, servers: str, out: str, job: str
) -> None:
    survivor.recover([orphan])
    other = DrivenSink(servers, f"{job}-other", out, input_topic=out)
    other.start_attempt()
    other.write(b"of another job")
    other.commit(other.pre_commit(1))
    other.die()
    assert values_of(servers, out) == [b"pre-committed"]
    assert survivor.committer.abort_lingering() == [f"{job}-1-0-1"]
    assert values_of(servers, out) == [b"pre-committed", b"of another job"]


def test_a_confirmed_transaction_is_done_even_after_its_id_was_taken_over(
    survivor: DrivenSink, orphan: Committable
) -> None:
    survivor.recover([orphan])
    survivor.start_attempt()
    survivor.die()
    [settled] = survivor.recover([orphan], confirmed=[orphan.name])
    assert settled.outcome is Outcome.ALREADY_COMMITTED


def test_the_witness_proves_a_commit_that_nobody_confirmed_after_its_id_was_taken_over(
    survivor: DrivenSink, orphan: Committable
) -> None:
    survivor.recover([orphan])
    survivor.start_attempt()
    survivor.die()
    [settled] = survivor.recover([orphan])
    assert settled.outcome is Outcome.ALREADY_COMMITTED
    assert "positions of this very checkpoint" in settled.evidence


def test_a_transaction_whose_id_was_taken_over_before_its_commit_is_lost(
    survivor: DrivenSink, orphan: Committable, servers: str, out: str
) -> None:
    survivor.committer.abort_lingering()
    [settled] = survivor.recover([orphan])
    assert settled.outcome is Outcome.LOST
    assert values_of(servers, out) == []


def test_a_transaction_that_only_moved_positions_is_no_loss_and_no_output_though_it_was_aborted(
    survivor: DrivenSink, servers: str, job: str, out: str
) -> None:
    first = DrivenSink(servers, job, out, input_topic=out)
    first.start_attempt()
    committable = first.pre_commit(1, position=5)
    survivor.committer.abort_lingering()
    first.die()
    [settled] = survivor.recover([committable])
    assert (settled.outcome, settled.holds_output) == (Outcome.ALREADY_COMMITTED, False)
    with ControlClient(servers, {}) as client:
        assert is_lost(client, committable), "whoever has struck it can tell"


def test_the_same_positions_with_another_checkpoint_prove_nothing(
    survivor: DrivenSink, orphan: Committable, servers: str, out: str
) -> None:
    survivor.committer.abort_lingering()
    consumer = Consumer({"bootstrap.servers": servers, "group.id": survivor.group})
    consumer.commit(offsets=[Target(out, 0, 5, "checkpoint=2")], asynchronous=False)
    consumer.close()
    [settled] = survivor.recover([orphan])
    assert settled.outcome is Outcome.LOST


@pytest.mark.proof
def test_a_transaction_that_the_broker_timed_out_is_lost(
    servers: str, job: str, out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    driven = DrivenSink(servers, job, out, input_topic=out)
    monkeypatch.setattr("twopc.kafka.sink.transaction_timeout_ms", lambda settings, client: 15_000)
    driven.start_attempt()
    try:
        driven.write(b"too late")
        committable = driven.pre_commit(1)
        _await_state(servers, committable, BrokerState.COMPLETE_ABORT)
        [settled] = driven.recover([committable])
    finally:
        driven.die()
    assert settled.outcome is Outcome.LOST
    assert "time-out" in settled.evidence


def test_a_topic_that_was_recreated_is_lost_by_its_name(
    survivor: DrivenSink, orphan: Committable, servers: str, out: str
) -> None:
    delete_topic(servers, out)
    create_topic(servers, out)
    [settled] = survivor.recover([orphan])
    assert settled.outcome is Outcome.LOST
    assert f"topic {out} was deleted and created again" in settled.evidence


def test_a_topic_that_is_gone_is_lost_by_its_name(
    survivor: DrivenSink, orphan: Committable, servers: str, out: str
) -> None:
    delete_topic(servers, out)
    [settled] = survivor.recover([orphan])
    assert settled.outcome is Outcome.LOST
    assert f"topic {out} was deleted" in settled.evidence


def test_the_groups_position_moves_with_the_commit_and_not_before(
    survivor: DrivenSink, orphan: Committable, servers: str, out: str
) -> None:
    where = TopicPartition(out, 0)
    with ControlClient(servers, {}) as client:
        before = client.group_offsets(survivor.group, [where])
        survivor.recover([orphan])
        eventually(lambda: client.group_offsets(survivor.group, [where]) != before)
        after = client.group_offsets(survivor.group, [where])
    assert before == {}
    assert (after[where].position, after[where].metadata) == (5, f"checkpoint=1 topic={INPUT_ID} attempt=1")


def test_ids_of_another_prefix_are_left_alone(servers: str, job: str, new_topic: Callable[..., str]) -> None:
    topic = new_topic()
    cousin = DrivenSink(servers, f"{job}-x", topic, input_topic=topic)
    cousin.start_attempt()
    cousin.write(b"a")
    committable = cousin.pre_commit(1)
    driven = DrivenSink(servers, job, topic, input_topic=topic)
    driven.start_attempt()
    driven.die()
    cousin.commit(committable)
    cousin.die()
    assert values_of(servers, topic) == [b"a"]


def test_the_second_sweep_leaves_the_attempts_own_transactions_alone_and_ends_a_zombies(
    survivor: DrivenSink, servers: str, out: str, job: str
) -> None:
    survivor.start_attempt()
    survivor.write(b"own")
    own = survivor.pre_commit(1)
    survivor.write(b"own, open")
    zombie = _open_by_hand(servers, f"{job}-0-0-1003", out)
    beyond = _open_by_hand(servers, f"{job}-0-5-0", out)
    swept = survivor.committer.abort_lingering()
    survivor.commit(own)
    survivor.commit(survivor.pre_commit(2))
    survivor.die()
    del zombie, beyond
    assert swept == [f"{job}-0-0-1003", f"{job}-0-5-0"]
    assert values_of(servers, out) == [b"own", b"own, open"]


def _open_by_hand(servers: str, transactional_id: str, topic: str) -> object:
    producer = TrackedProducer(transactional_config(producer_config(servers, {}), transactional_id, 60_000))
    producer.client.init_transactions(60)
    producer.know(topic)
    producer.client.begin_transaction()
    producer.client.produce(topic, b"zombie")
    producer.client.flush(60)
    return producer


def _await_state(servers: str, committable: Committable, state: BrokerState) -> None:
    name = PreparedTransaction.from_committable(committable).transactional_id

    def reached() -> bool:
        found = client.describe_transaction(name)
        return found is not None and found.described.state is state

    with ControlClient(servers, {}) as client:
        eventually(reached)
