"""A topic of the job's own at a checkpoint: whose its records are, told by what the checkpoint says of it."""

from __future__ import annotations

from dataclasses import replace

from tests.drill.test_real_output import IN, OUT, ClippedLog, ForgedLog, checkpoint
from twopc.drill.bounds import prepared_of
from twopc.drill.own_topics import OwnOutput, OwnRecords
from twopc.drill.real_output import RealOutput
from twopc.drill.replay_range import ReplayRange
from twopc.drill.verdict import Check, CheckVerdict
from twopc.kafka.place import Place
from twopc.kafka.positions.course import Written
from twopc.kafka.positions.partition_position import PartitionPosition
from twopc.kafka.sink import DeliveryGuarantee
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.kafka.topics.known_topics import KnownTopic, known_outputs
from twopc.protocol.facts import CheckpointMetadata, SubtaskSnapshot
from twopc.protocol.ids import AttemptId
from twopc.verify.history import Expected

PRODUCER = 7
"""It writes every forged log."""
WHOLE = {OUT: (Position(0), Position(100))}


def taken(end: int, *passed: tuple[int, int], names: tuple[TopicPartition, ...] = (OUT,)) -> CheckpointMetadata:
    """Return a checkpoint for which the producer had written up to there."""
    [snapshot] = (metadata := checkpoint(*names)).snapshots
    held = PartitionPosition(OUT, "id", Position(0), passed=tuple((Position(a), Position(b)) for a, b in passed))
    known = KnownTopic("id", 1, Written(AttemptId(1), (PRODUCER,), (Position(end),)))
    whole = SubtaskSnapshot.of(
        snapshot.subtask,
        [*snapshot.positions, replace(held.to_split_position(), source="own")],
        snapshot.state,
        snapshot.committables,
        outputs=known_outputs({OUT.topic: known}, ()),
    )
    return replace(metadata, snapshots=(whole,))


def judge(log: ForgedLog, values: str, metadata: CheckpointMetadata, *, begins: int = 0) -> Check:
    """Judge what was written since the checkpoint, which reads the topic from there on."""
    made = [("out", Expected(Place(IN, 5 + number), b"a", each.encode())) for number, each in enumerate(values)]
    starts = {IN: Position(5), OUT: Position(begins)}
    required = {IN: Position(5 + len(values)), OUT: Position(100)}
    topic = OwnOutput(log, DeliveryGuarantee.EXACTLY_ONCE, prepared_of(metadata.committables))
    return RealOutput({"out": topic}, metadata, ReplayRange(starts, required, required, WHOLE)).judge(made, {})


def forged(*transactions: str, log: ForgedLog | None = None) -> ForgedLog:
    log = log or ForgedLog()
    log.write(OUT, *transactions)
    return log


def test_what_led_to_a_checkpoint_ends_where_its_writer_said() -> None:
    records, transaction = OwnRecords.of(taken(6), OUT.topic), forged("ab", "cde").lookup(WHOLE)[OUT].at(3)
    assert transaction is not None
    assert [records.led_here(Place(OUT, offset), transaction) for offset in (3, 5, 7)] == [True, True, False]


def test_what_was_written_since_is_told_from_the_same_written_before() -> None:
    log = forged("fg", "fg", "fg")
    assert judge(log, "fg", taken(5)).verdict is CheckVerdict.HELD
    doubled = judge(forged("fg", "fg", "fg", "fg"), "fg", taken(5))
    assert (doubled.verdict, doubled.text) == (CheckVerdict.BROKEN, "of the output: 2 duplicated")
    assert judge(forged("fg", "fg"), "fg", taken(5)).text == "of the output: 2 lost"


def test_what_an_abandoned_course_wrote_is_neither_from_before_nor_from_after() -> None:
    log, metadata = forged("fg", "fg", "fg"), taken(2, (3, 6))
    assert judge(log, "fg", metadata).verdict is CheckVerdict.HELD
    assert OwnRecords.of(metadata, OUT.topic).are_passed(Place(OUT, 3))


def test_it_is_judged_where_the_job_has_deleted_what_it_had_read() -> None:
    log = forged("ab", "cd", "fg", log=ClippedLog())
    assert judge(log, "fg", taken(5), begins=3).verdict is CheckVerdict.HELD
