"""A topic of the job's own at a checkpoint: whose its records are, told by their transactions alone."""

from __future__ import annotations

from dataclasses import replace

from tests.drill.test_real_output import IN, OUT, ClippedLog, ForgedLog, checkpoint
from tests.kafka.test_batches import written
from twopc.drill.bounds import prepared_of
from twopc.drill.own_topics import OwnOutput, written_before
from twopc.drill.real_output import RealOutput
from twopc.drill.replay_range import ReplayRange
from twopc.drill.verdict import Check, CheckVerdict
from twopc.kafka.sink import DeliveryGuarantee
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.verify.history import Expected, Place

ACKNOWLEDGED_MS = 180
"""Between the end of the first transaction in a log, at 100, and that of the second, the checkpoint's own, at 200."""
WHOLE = {OUT: (Position(0), Position(100))}


def before(log: ForgedLog, *, names: tuple[TopicPartition, ...] = (OUT,)) -> frozenset[int]:
    metadata = replace(checkpoint(*names), acknowledged_ms=ACKNOWLEDGED_MS)
    return written_before(metadata, prepared_of(metadata.committables), log.lookup(WHOLE))[OUT]


def judge(log: ForgedLog, values: str, *, begins: int = 0) -> Check:
    """Judge what was written since the checkpoint, which reads the topic from there on."""
    metadata = replace(checkpoint(OUT), acknowledged_ms=ACKNOWLEDGED_MS)
    made = [("out", Expected(Place(IN, 5 + number), b"a", each.encode())) for number, each in enumerate(values)]
    starts = {IN: Position(5), OUT: Position(begins)}
    required = {IN: Position(5 + len(values)), OUT: Position(100)}
    topic = OwnOutput(log, DeliveryGuarantee.EXACTLY_ONCE, prepared_of(metadata.committables))
    return RealOutput({"out": topic}, metadata, ReplayRange(starts, required, required, WHOLE)).judge(made, {})


def forged(*transactions: str, aborted: int = -1, log: ForgedLog | None = None) -> ForgedLog:
    log = log or ForgedLog()
    log.write(OUT, *transactions, aborted=aborted)
    return log


def test_from_before_a_checkpoint_is_what_it_names_and_what_was_committed_before_it() -> None:
    assert before(forged("ab", "cde", "fg", "hi")) == {0, 1}


def test_what_began_later_is_from_after_it_though_nothing_of_the_checkpoint_stands_there() -> None:
    assert before(forged("ab", "cde", "fg"), names=()) == {0}


def test_what_the_checkpoint_names_is_from_before_it_while_it_is_not_committed() -> None:
    log = forged("ab")
    log.logs[OUT] += written(3, 2)
    assert before(log) == {0, 1}


def test_what_was_written_since_is_told_from_the_same_written_before() -> None:
    assert judge(forged("fg", "fg", "fg"), "fg").verdict is CheckVerdict.HELD
    doubled = judge(forged("fg", "fg", "fg", "fg"), "fg")
    assert (doubled.verdict, doubled.text) == (CheckVerdict.BROKEN, "of the output: 2 duplicated")
    assert judge(forged("fg", "fg"), "fg").text == "of the output: 2 lost"


def test_it_is_judged_where_the_job_has_deleted_what_it_had_read() -> None:
    log = forged("ab", "cd", "fg", log=ClippedLog())
    assert judge(log, "fg", begins=3).verdict is CheckVerdict.HELD
