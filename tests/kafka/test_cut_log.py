"""Logs that lost records after they were read, and go on with others: told by leader epochs, and refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import ElectionType
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.jobs.cli import twopc
from tests.kafka.kit import eventually
from tests.kafka.test_planning import CONTEXT, ComingBack
from tests.kafka.test_source import Reading, read_up_to
from twopc.errors import CheckpointCorrupted, ConfigurationError, Unavailable
from twopc.kafka.clients.control_client import EARLIEST, ControlClient, GroupOffset, TopicInfo
from twopc.kafka.positions.cut_log import cut_logs
from twopc.kafka.positions.offset_status import Readability, fetch_offset_statuses
from twopc.kafka.positions.partition_position import LastRead, PartitionPosition, PartitionSplit, partition_positions
from twopc.kafka.source import KafkaSource
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.protocol.facts import SplitPosition
from twopc.protocol.ids import CheckpointId
from twopc.testing.broker import Broker
from twopc.testing.local_broker import LocalBroker
from twopc.testing.topics import Write, create_topic, produce, read_topic

IN, IN1 = TopicPartition("in", 0), TopicPartition("in", 1)
HELD = PartitionPosition(IN, "id", Position(120), read=LastRead(5, Position(120)))


def is_cut(held: PartitionPosition, end: int | None) -> bool:
    return bool(cut_logs([held], {IN: None if end is None else Position(end)}))


def test_a_log_that_has_what_was_read_and_more_is_the_one_that_was_read() -> None:
    assert not is_cut(HELD, 120)
    assert not is_cut(HELD, 500)


def test_a_log_in_which_the_epoch_ends_before_what_was_read_was_cut_off() -> None:
    assert is_cut(HELD, 119)


def test_a_log_whose_leader_does_not_know_the_epoch_is_another_one() -> None:
    assert is_cut(HELD, None)


def test_markers_behind_the_last_record_may_be_of_a_later_epoch() -> None:
    behind = replace(HELD, position=Position(122))
    assert not is_cut(behind, 120)
    assert is_cut(behind, 119)


def test_what_was_read_ahead_of_the_position_may_be_lost() -> None:
    """It is in no state, and is read anew, as what stands there now."""
    ahead = replace(HELD, position=Position(100))
    assert not is_cut(ahead, 100)
    assert is_cut(ahead, 99)


def test_a_position_of_no_epoch_and_brokers_that_can_t_tell_are_not_judged() -> None:
    assert not is_cut(replace(HELD, read=None), 80)
    assert not cut_logs([HELD], {})


def test_what_was_read_last_is_stored_with_the_position() -> None:
    held = replace(HELD, gaps=((Position(3), Position(5)),), gone=True)
    stored = held.to_split_position()
    assert stored.position == [120, "id", {"read": [5, 120], "gaps": [[3, 5]], "gone": True}]
    assert PartitionPosition.from_split_position(stored) == held
    with pytest.raises(CheckpointCorrupted, match=r"lacks what a 'position' holds.*read is 5, not a list"):
        PartitionPosition.from_split_position(replace(stored, position=[120, "id", {"read": 5}]))


class Cut(ComingBack):
    """Brokers with two partitions, from offset 0 to 200, whose epoch 5 ends here."""

    def __init__(self, ends: Mapping[TopicPartition, int | None]) -> None:
        super().__init__(0)
        self.known = {"in": TopicInfo("id", 2)}
        self.ends = ends

    def offsets(self, at: Mapping[TopicPartition, int]) -> dict[TopicPartition, Position]:
        return {each: Position(0 if when == EARLIEST else 200) for each, when in at.items()}

    def high_watermarks(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, Position]:
        return dict.fromkeys(partitions, Position(200))

    def epoch_ends(self, epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, Position | None]:
        assert set(epochs.values()) <= {5}
        return {each: None if (end := self.ends[each]) is None else Position(end) for each in epochs}


Plan = Callable[..., list[PartitionSplit]]


@pytest.fixture
def plan(monkeypatch: pytest.MonkeyPatch) -> Plan:
    """Plan from offset 120 of both partitions, with epochs that end here, and what is accepted."""

    def planned(
        ends: Mapping[TopicPartition, int | None], accepted: str, at: PartitionPosition = HELD
    ) -> list[PartitionSplit]:
        monkeypatch.setattr("twopc.kafka.input.planner.ControlClient", Cut(ends))
        context = replace(
            CONTEXT, settings=replace(CONTEXT.settings, accept_gap=tuple(filter(None, accepted.split(","))))
        )
        held = [replace(at, partition=each) for each in (IN, IN1)]
        known: dict[str, SplitPosition] = {str(each.partition): each.to_split_position() for each in held}
        return list(map(PartitionSplit.from_split, KafkaSource("in").open_planner(context).plan(known, bounded=False)))

    return planned


def test_a_cut_log_is_refused_and_read_from_where_it_was_cut_once_that_is_accepted(plan: Plan) -> None:
    with pytest.raises(ConfigurationError, match=r"stood from offset 80 on, .*: --accept-gap in\[0\]@80-120$"):
        plan({IN: 80, IN1: 120}, "")
    first, second = plan({IN: 80, IN1: 120}, "in[0]@80-120")
    assert (first.start, first.read) == (80, None), "what was read last is not there any more"
    assert (second.start, second.read) == (120, LastRead(5, Position(120)))


@pytest.mark.parametrize("accepted", ["in[0]@81-120", "in[0]@80-119", "in[1]@80-120"])
def test_who_accepts_something_else_is_refused(plan: Plan, accepted: str) -> None:
    with pytest.raises(ConfigurationError, match=r"--accept-gap in\[0\]@80-120$"):
        plan({IN: 80, IN1: 120}, accepted)


def test_where_nobody_knows_the_epoch_a_person_says_from_where_on_it_is_another_log(plan: Plan) -> None:
    with pytest.raises(ConfigurationError, match=r"no such epoch .*: --accept-gap in\[0\]@FROM-120,in\[1\]@90-120$"):
        plan({IN: None, IN1: 90}, "")
    assert [each.start for each in plan({IN: None, IN1: 90}, "in[0]@70-120,in[1]@90-120")] == [70, 90]


def test_a_position_of_no_epoch_behind_the_end_of_a_log_is_refused_and_read_from_there_once_that_is_accepted(
    plan: Plan,
) -> None:
    held = PartitionPosition(IN, "id", Position(250))
    with pytest.raises(ConfigurationError, match=r"ends at 200: .* --accept-gap in\[0\]@200-250,in\[1\]@200-250$"):
        plan({}, "in[0]@200-250", held)
    assert [each.start for each in plan({}, "in[0]@200-250,in[1]@200-250", held)] == [200, 200]


def test_a_start_from_a_group_is_judged_by_the_epoch_that_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    def begin(epoch: int | None) -> int:
        brokers = Cut({IN: 80, IN1: 120})
        held = {IN: GroupOffset(Position(120), "", epoch)}
        monkeypatch.setattr(brokers, "group_offsets", lambda *_: held)
        monkeypatch.setattr("twopc.kafka.input.planner.ControlClient", brokers)
        [first, _] = KafkaSource("in").open_planner(CONTEXT).plan({}, bounded=False)
        return PartitionSplit.from_split(first).start

    with pytest.raises(ConfigurationError, match=r"--accept-gap in\[0\]@80-120$"):
        begin(5)
    assert begin(None) == 120


@pytest.mark.broker
@pytest.mark.usefixtures("record_path")
def test_a_reader_tells_the_epoch_of_what_it_has_read_and_a_broker_where_that_ends(
    broker: Broker, topic: Callable[[], str]
) -> None:
    name, servers = topic(), broker.bootstrap_servers
    create_topic(servers, name)
    produce(servers, name, [b"%d" % number for number in range(10)])
    reading, source = Reading(servers, name), KafkaSource(name)
    try:
        reader = reading.open(source, reading.plan(source, bounded=False))
        read_up_to(reader, 10)
        (held,) = partition_positions(reader.positions())
        assert held.read is not None
        assert held.read.end == held.position == 10
        with ControlClient(servers, {}) as client:
            assert client.epoch_ends({held.partition: held.read.epoch}) == {held.partition: 10}
            assert client.epoch_ends({held.partition: held.read.epoch + 9}) == {held.partition: None}
            reader.commit_positions(CheckpointId(1), reader.positions())
            eventually(lambda: bool(client.group_offsets(name, [held.partition])))
            assert client.group_offsets(name, [held.partition])[held.partition].epoch == held.read.epoch
        (again,) = reading.plan(source, {str(held.partition): held.to_split_position()})
        assert PartitionSplit.from_split(again).read == held.read
        lost = replace(held, position=Position(12), read=LastRead(held.read.epoch, Position(12)))
        (status,) = fetch_offset_statuses(servers, {}, [lost])
        assert status.readability is Readability.CUT
    finally:
        reading.close()


@pytest.fixture
def three(tmp_path: Path) -> Iterator[LocalBroker]:
    with LocalBroker(tmp_path / "kafka", brokers=3, light=True) as running:
        yield running


JOB = """
from twopc import Job, KafkaSink, KafkaSource

def count(seen, value):
    return (seen or 0) + 1, b"%d %s" % ((seen or 0) + 1, value)

job = Job("cut")
job.source(KafkaSource("in")).stateful_map(count, name="seen").sink(KafkaSink("out"))
"""
FOLLOWER, LEADER = 2, 1
"""The places of these nodes; the first keeps the controllers' majority with either."""


@pytest.mark.proof
@pytest.mark.broker
@pytest.mark.timeout(600)
def test_what_an_unclean_leader_has_not_is_refused_and_what_it_has_instead_is_read_once(
    three: LocalBroker, tmp_path: Path
) -> None:
    admin = AdminClient({"bootstrap.servers": three.bootstrap_servers})
    placed = NewTopic("in", 1, replica_assignment=[[LEADER + 1, FOLLOWER + 1]], config={"min.insync.replicas": "1"})
    admin.create_topics([placed])["in"].result(60)
    create_topic(three.bootstrap_servers, "out")
    (tmp_path / "job.py").write_text(JOB)
    command = ("run", str(tmp_path / "job.py"), "-b", three.bootstrap_servers, "--checkpoint-dir", str(tmp_path / "cp"))
    bounded = (*command, "--host", "process", "--until-end")

    def write(first: int, end: int) -> None:
        produce(three.bootstrap_servers, "in", [Write(b"%d" % number, key=b"k") for number in range(first, end)])

    write(0, 80)
    three.nodes[FOLLOWER].kill()
    write(80, 120)
    ended = twopc(*bounded)
    assert ended.code == 0, ended.err
    three.nodes[LEADER].kill()
    with suppress(Unavailable):
        three.start_node(three.nodes[FOLLOWER])  # It misses the other one.

    def is_elected() -> bool:
        elected = admin.elect_leaders(ElectionType.UNCLEAN, [ClientPartition("in", 0)]).result(30)
        return all(error is None for error in elected.values())

    eventually(is_elected)
    write(200, 260)

    refused = twopc(*bounded)
    assert refused.code == 2
    assert "the brokers have lost what stood from offset 80 on" in refused.err
    advice = refused.err.strip().rpartition("say it once: ")[2].split()
    assert advice == ["--accept-gap", "in[0]@80-120"]
    accepted = twopc(*bounded, *advice)
    assert accepted.code == 0, accepted.err
    made = [int(read.value.split()[1]) for read in read_topic(three.bootstrap_servers, "out") if read.value]
    assert made == [*range(120), *range(200, 260)]
