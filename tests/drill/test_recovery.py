"""How long a job took to recover from each fault, and what it read again, from its events and its readers' notes."""

from __future__ import annotations

from pathlib import Path

from tests.job_events import event
from twopc import events
from twopc.drill.recovery import (
    ReadNote,
    Recovery,
    RecoveryTimes,
    figures_of,
    judge_catching_up,
    judge_recovery,
    note_read,
    reads_again,
    reads_of,
)
from twopc.drill.verdict import CheckVerdict
from twopc.protocol.facts import SplitPosition


def times(*heard: tuple[type[events.CheckpointTriggered | events.CheckpointCompleted], int, int]) -> RecoveryTimes:
    """Class, checkpoint and second."""
    found = RecoveryTimes()
    for kind, number, second in heard:
        found.note(event(kind, checkpoint_id=number, time_ms=second * 1000))
    return found


T, C = events.CheckpointTriggered, events.CheckpointCompleted


def test_a_job_has_recovered_when_a_checkpoint_that_began_after_the_fault_is_complete() -> None:
    found = times((T, 1, 8), (C, 1, 11), (T, 2, 13), (C, 2, 14), (T, 3, 30), (C, 3, 31))
    assert found.of([("killed", 10.0), ("cut", 20.0), ("late", 40.0)], []) == (
        Recovery("killed", 10.0, 4.0, 0),
        Recovery("cut", 20.0, 11.0, 0),
        Recovery("late", 40.0, None, 0),
    )


def test_what_was_read_again_counts_for_the_fault_before_it() -> None:
    assert [each.read_again for each in times().of([("a", 10.0), ("b", 20.0)], [(12, 5), (13, 2), (25, 7)])] == [7, 7]


def test_a_reader_that_begins_behind_the_furthest_reads_again() -> None:
    lines = [(1, 0, 0, 1), (2, 0, 40, 0), (2, 1, 30, 0), (3, 0, 25, 1), (3, 1, 30, 1), (4, 0, 90, 0)]
    notes = [ReadNote(at, f"in[{number}]", position, opened == 1) for at, number, position, opened in lines]
    assert reads_again(notes) == [(3, 15)]


def test_partitions_of_one_number_of_two_topics_are_two() -> None:
    notes = [ReadNote(1, "web[0]", 40, False), ReadNote(2, "app[0]", 10, True)]
    assert not reads_again(notes)


def test_what_readers_note_can_be_read_back(tmp_path: Path) -> None:
    log = tmp_path / "reads.log"
    note_read(log, [SplitPosition("in[1]", 1, [7, "id"])], opened=True)
    [note] = reads_of(log)
    assert (note.split, note.position, note.opened) == ("in[1]", 7, True)


def test_a_recovery_that_took_too_long_breaks_the_drill() -> None:
    check = judge_recovery([Recovery("a", 1.0, 9.9, 0), Recovery("b", 2.0, 10.1, 0), Recovery("c", 3.0, None, 0)], 10)
    assert (check.verdict, check.findings) == (CheckVerdict.BROKEN, ("late: b: 10.1 s", "late: c: not over at the end"))
    assert judge_recovery([Recovery("a", 1.0, 9.9, 0)], 10).verdict is CheckVerdict.HELD


def test_a_restored_job_that_caught_up_too_late_breaks_the_drill() -> None:
    assert [judge_catching_up(seconds, 10).verdict for seconds in (9.9, 10.1, None)] == [
        CheckVerdict.HELD,
        CheckVerdict.BROKEN,
        CheckVerdict.NOT_JUDGED,
    ]


def test_the_figures_are_the_longest_and_the_sum() -> None:
    found = [Recovery("a", 1.0, 3.0, 5), Recovery("b", 2.0, None, 6)]
    assert figures_of(found) == {"longest recovery, s": 3.0, "records read again": 11.0}


def test_where_no_fault_struck_there_is_nothing_to_recover_from() -> None:
    assert RecoveryTimes().of([], [(1.0, 5)]) == ()
