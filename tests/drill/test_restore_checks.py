"""What the broker's answers mean for a restore: positions and pending transactions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from twopc.drill.restore_checks import Prospect, complete_up_to, judge_positions, judge_transactions, prospects
from twopc.drill.verdict import CheckVerdict
from twopc.kafka.positions.offset_status import OffsetStatus, Readability
from twopc.kafka.positions.partition_position import PartitionPosition
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.kafka.transactions import transaction_verdict
from twopc.protocol.checkpoints import CheckpointKind
from twopc.protocol.facts import CheckpointMetadata, Committable, StateHandle, SubtaskSnapshot
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex

IN = TopicPartition("in", 0)

OPEN = transaction_verdict.Commit()
DONE = transaction_verdict.AlreadyCommitted("the broker says CompleteCommit for its start time")
ABORTED = transaction_verdict.Lost("the broker says CompleteAbort", certain=True)
GONE = transaction_verdict.Lost("the broker knows nothing of it")


def at(position: int, topic_id: str = "id-1", partition: TopicPartition = IN) -> PartitionPosition:
    return PartitionPosition(partition, topic_id, Position(position))


def status(readability: Readability) -> OffsetStatus:
    return OffsetStatus(IN, readability, Position(100), Position(500))


def test_a_position_that_can_be_read_is_no_finding() -> None:
    assert judge_positions([at(300)], [status(Readability.READABLE)]).verdict is CheckVerdict.HELD


@pytest.mark.parametrize(
    ("position", "readability", "named"),
    [
        (99, Readability.DELETED, "out of retention: in[0]@99, but the first record is at 100: 1 are gone"),
        (501, Readability.BEYOND, "beyond the end: in[0]@501, but the partition ends at 500"),
        (300, Readability.RECREATED, "recreated: input topic in"),
        (300, Readability.GONE, "deleted: in[0]@300"),
        (300, Readability.CUT, "lost: the brokers have lost what was read of in[0] before 300"),
    ],
)
def test_a_position_that_means_nothing_any_more_is_named(position: int, readability: Readability, named: str) -> None:
    check = judge_positions([at(300), at(position)], [status(Readability.READABLE), status(readability)])
    assert check.verdict is CheckVerdict.BROKEN
    assert [finding.startswith(named) for finding in check.findings] == [True]


def committable(checkpoint: int, subtask: int = 0) -> Committable:
    return Committable(f"t-{subtask}@{checkpoint}", CheckpointId(checkpoint), SubtaskIndex(subtask), {})


def checkpoint(number: int, *pending: Sequence[Committable]) -> CheckpointMetadata:
    """A checkpoint of one subtask for each of `pending`."""
    snapshots = tuple(
        SubtaskSnapshot.of(
            SubtaskIndex(subtask),
            (at(100 * number, partition=TopicPartition("in", subtask)).to_split_position(),),
            StateHandle(f"chk-{number}/subtask-{subtask}", "", 0, 0),
            tuple(mine),
            base=CheckpointId(number - 1),
        )
        for subtask, mine in enumerate(pending)
    )
    number_of = CheckpointId(number)
    return CheckpointMetadata("job", number_of, AttemptId(1), len(pending), CheckpointKind.PERIODIC, 0, 0, snapshots)


@pytest.mark.parametrize(
    ("verdict", "prospect", "held"),
    [
        pytest.param(OPEN, Prospect.WOULD_COMMIT, CheckVerdict.HELD, id="open"),
        pytest.param(DONE, Prospect.ALREADY_COMMITTED, CheckVerdict.HELD, id="committed"),
        pytest.param(GONE, Prospect.LOST, CheckVerdict.BROKEN, id="lost without proof"),
        pytest.param(transaction_verdict.Wait(), Prospect.UNDECIDED, CheckVerdict.NOT_JUDGED, id="undecided"),
    ],
)
def test_a_pending_transaction_is_told_for_what_recovery_would_do(
    verdict: transaction_verdict.Verdict, prospect: Prospect, held: CheckVerdict
) -> None:
    mine = committable(7)
    found = prospects(checkpoint(7, [mine]), {mine.name: verdict}, frozenset(), [], {})
    assert [each.prospect for each in found] == [prospect]
    assert judge_transactions(found).verdict is held


def test_what_the_broker_aborted_would_be_written_again_where_the_checkpoint_before_is_kept() -> None:
    mine = committable(7)
    found = prospects(checkpoint(7, [mine]), {mine.name: ABORTED}, frozenset(), [checkpoint(6, [committable(6)])], {})
    assert [each.prospect for each in found] == [Prospect.WOULD_REWRITE]
    check = judge_transactions(found)
    assert check.verdict is CheckVerdict.HELD
    assert "from checkpoint 6" in check.findings[0]


def test_what_the_broker_aborted_is_lost_where_it_is_not() -> None:
    mine = committable(7)
    found = prospects(checkpoint(7, [mine]), {mine.name: ABORTED}, frozenset(), [], {})
    assert judge_transactions(found).verdict is CheckVerdict.BROKEN


def test_what_is_open_behind_a_lost_one_of_its_subtask_would_not_be_committed() -> None:
    before, behind, other = committable(6), committable(7), committable(7, 1)
    latest = checkpoint(7, [before, behind], [other])
    latest = replace(latest, snapshots=(replace(latest.snapshots[0], base=CheckpointId(5)), latest.snapshots[1]))
    verdicts: dict[str, transaction_verdict.Verdict] = {before.name: ABORTED, behind.name: OPEN, other.name: OPEN}
    found = {each.name: each.prospect for each in prospects(latest, verdicts, frozenset(), [checkpoint(5, [], [])], {})}
    assert found == {
        before.name: Prospect.WOULD_REWRITE,
        behind.name: Prospect.WOULD_REWRITE,
        other.name: Prospect.WOULD_COMMIT,
    }


def test_what_another_group_has_open_behind_a_loss_would_be_committed_so_that_nothing_is_written_again() -> None:
    """As recovery does: each group is settled by itself, and what one has committed can't be written again."""
    lost = replace(committable(6), group="kafka/c/one")
    other = replace(committable(7), name="elsewhere@7", group="kafka/c/other")
    latest = checkpoint(7, [lost, other])
    latest = replace(latest, snapshots=(replace(latest.snapshots[0], base=CheckpointId(5)),))
    verdicts: dict[str, transaction_verdict.Verdict] = {lost.name: ABORTED, other.name: OPEN}
    found = prospects(latest, verdicts, frozenset(), [checkpoint(5, [])], {})
    assert {each.name: each.prospect for each in found} == {
        lost.name: Prospect.LOST,
        other.name: Prospect.WOULD_COMMIT,
    }
    [said] = [each.why for each in found if each.prospect is Prospect.LOST]
    assert "what subtask 0 wrote for checkpoint 7 is committed" in said


def test_a_loss_that_was_settled_before_is_no_finding() -> None:
    mine = committable(7)
    found = prospects(checkpoint(7, [mine]), {}, frozenset({mine.name}), [], {})
    assert [each.prospect for each in found] == [Prospect.SETTLED]
    assert judge_transactions(found).verdict is CheckVerdict.HELD


def test_of_nothing_pending_nothing_is_wrong() -> None:
    check = judge_transactions([])
    assert (check.verdict, check.text) == (CheckVerdict.HELD, "none is pending")


def test_with_nothing_open_all_that_is_committed_must_be_visible() -> None:
    kept = [(checkpoint(1), True), (checkpoint(2), True), (checkpoint(3), False)]
    assert complete_up_to(kept, nothing_open=True) == checkpoint(2)


def test_an_open_transaction_may_hide_what_others_wrote_for_the_newest() -> None:
    kept = [(checkpoint(1), True), (checkpoint(2), True), (checkpoint(3), False)]
    assert complete_up_to(kept, nothing_open=False) == checkpoint(1)


@pytest.mark.parametrize("nothing_open", [True, False])
def test_where_nothing_is_committed_nothing_must_be_visible(*, nothing_open: bool) -> None:
    assert complete_up_to([(checkpoint(1), False)], nothing_open=nothing_open) is None
