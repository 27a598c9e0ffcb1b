"""The subtask's loop with a scripted source, a recording sink and a test that plays the coordinator."""

from collections.abc import Callable
from unittest.mock import patch

import pytest

from tests.operators.kit import Node
from tests.runtime.kit import RecordingSink, ScriptedReader, Stage, complete, trigger
from twopc.clock import ManualClock
from twopc.errors import CheckpointDeclined, Fenced, TransactionLost
from twopc.operators import Dataflow, KeyedStateStore, WindowAggregate
from twopc.operators.window_step import Count
from twopc.protocol.facts import Committable, SplitPosition
from twopc.protocol.figures import BYTES_IN, FIGURES, RECORDS_IN, RECORDS_OUT
from twopc.protocol.ids import CheckpointId
from twopc.protocol.messages import (
    Abort,
    Ack,
    Committed,
    Complete,
    Decline,
    Drain,
    EndOfInput,
    FencedOff,
    Finish,
    Progress,
)
from twopc.serde import Json
from twopc.source import SourceReader
from twopc.windows import Tumbling


def test_a_checkpoint_holds_exactly_what_was_read_before_its_trigger(make: Callable[..., Stage]) -> None:
    stage = make([[b"a"], [b"b"], [b"c"]])
    stage.steps(2)
    trigger(stage, 1)
    stage.steps(1)
    (ack,) = stage.sent(Ack)
    assert "pre-commit 1 ab" in stage.sink.log
    assert ack.snapshot.positions == (SplitPosition("in[0]", 0, 2),)
    assert [committable.name for committable in ack.snapshot.committables] == ["t@1"]


def test_nothing_is_committed_before_the_completion(make: Callable[..., Stage]) -> None:
    stage = make([[b"a"]])
    stage.steps(1)
    trigger(stage, 1)
    stage.steps(3)
    assert not [line for line in stage.sink.log if line.startswith("commit")]


def test_a_completion_commits_and_is_reported(make: Callable[..., Stage]) -> None:
    stage = make([[b"a"]])
    stage.steps(1)
    trigger(stage, 1)
    complete(stage, 1)
    stage.steps(2)
    assert stage.sink.log[-2:] == ["commit t@1 by 1", "release 1"]
    assert stage.sent(Committed) == [Committed(CheckpointId(1))]


def test_polls_are_shorter_while_output_waits_for_a_completion(make: Callable[..., Stage]) -> None:
    stage = make([[b"a"]])
    stage.steps(1)
    trigger(stage, 1)
    stage.steps(1)
    complete(stage, 1)
    stage.steps(2)
    before, waiting, _, after = stage.reader.waited
    assert waiting < before == after


def test_a_lost_completion_is_subsumed_by_the_next(make: Callable[..., Stage]) -> None:
    stage = make([[b"a"], [b"b"]])
    stage.steps(1)
    trigger(stage, 1)
    stage.steps(1)
    trigger(stage, 2)
    complete(stage, 2)
    stage.steps(2)
    assert [line for line in stage.sink.log if line.startswith("commit")] == ["commit t@1 by 2", "commit t@2 by 2"]


def test_an_aborted_checkpoint_is_committed_with_the_next_completed_one(make: Callable[..., Stage]) -> None:
    stage = make([[b"a"], [b"b"]])
    stage.steps(1)
    trigger(stage, 1)
    stage.steps(1)
    stage.link.deliver(Abort(CheckpointId(1), "expired"))
    trigger(stage, 2)
    stage.steps(1)
    ack = stage.sent(Ack)[-1]
    assert [committable.name for committable in ack.snapshot.committables] == ["t@1", "t@2"]
    assert "abort open" not in stage.sink.log


def test_an_interval_without_output_makes_no_transaction_but_commits_its_positions(make: Callable[..., Stage]) -> None:
    stage = make([])
    trigger(stage, 1)
    complete(stage, 1)
    stage.steps(2)
    assert stage.sink.log == ["begin", "release 1"]
    assert stage.reader.committed == [(1, 0)]


def test_positions_that_the_sink_commits_are_not_committed_beside_it(make: Callable[..., Stage]) -> None:
    stage = make([], follower="g")
    trigger(stage, 1)
    complete(stage, 1)
    stage.steps(2)
    assert stage.sent(Committed) == [Committed(CheckpointId(1))]
    assert stage.reader.committed == []


def test_a_flush_that_fails_for_this_checkpoint_declines_it_and_the_loop_goes_on(make: Callable[..., Stage]) -> None:
    stage = make([[b"a"], [b"b"]], sink=RecordingSink(fail_pre_commit=CheckpointDeclined("flush timed out")))
    stage.steps(1)
    trigger(stage, 1)
    stage.steps(1)
    assert stage.sent(Decline) == [Decline(CheckpointId(1), "flush timed out")]
    assert stage.sent(Ack) == []
    assert stage.reader.read == 2


def test_what_one_sink_pre_committed_goes_with_the_next_checkpoint_though_another_declined(
    make: Callable[..., Stage],
) -> None:
    beside = RecordingSink(fail_pre_commit=CheckpointDeclined("disk full"))
    stage = make([[b"a"], [b"b"]], beside=beside)
    stage.steps(1)
    trigger(stage, 1)
    stage.steps(1)
    beside.fail_pre_commit = None
    trigger(stage, 2)
    stage.steps(1)
    assert stage.sent(Decline) == [Decline(CheckpointId(1), "disk full")]
    [acknowledged] = stage.sent(Ack)
    assert [item.name for item in acknowledged.snapshot.committables] == ["t@1", "t@2"]
    complete(stage, 2)
    stage.steps(2)
    assert [line for line in stage.sink.log if "commit t" in line] == ["commit t@1 by 2", "commit t@2 by 2"]
    assert beside.log == ["begin", "release 2"]


def test_a_storage_that_refuses_declines_and_keeps_the_transaction_pending(make: Callable[..., Stage]) -> None:
    stage = make([[b"a"]])
    stage.storage.refuse = "disk full"
    stage.steps(1)
    trigger(stage, 1)
    stage.steps(1)
    stage.storage.refuse = None
    trigger(stage, 2)
    stage.steps(1)
    assert stage.sent(Decline) == [Decline(CheckpointId(1), "disk full")]
    assert [committable.name for committable in stage.sent(Ack)[0].snapshot.committables] == ["t@1"]


def test_an_acknowledgement_that_no_message_can_hold_declines_and_keeps_the_transaction_pending(
    make: Callable[..., Stage],
) -> None:
    stage = make([[b"a"]])
    stage.link.too_large = Ack
    stage.steps(1)
    trigger(stage, 1)
    stage.steps(1)
    stage.link.too_large = None
    trigger(stage, 2)
    stage.steps(1)
    [declined] = stage.sent(Decline)
    assert (declined.checkpoint_id, "raise the parallelism" in declined.reason) == (1, True)
    assert [committable.name for committable in stage.sent(Ack)[0].snapshot.committables] == ["t@1"]


def test_a_lost_transaction_ends_the_subtask(make: Callable[..., Stage]) -> None:
    stage = make([[b"a"]], sink=RecordingSink(fail_commit=TransactionLost("gone")))
    stage.steps(1)
    trigger(stage, 1)
    complete(stage, 1)
    with pytest.raises(TransactionLost, match="gone"):
        stage.steps(1)
    assert stage.sent(Committed) == []


def test_a_drain_reads_to_the_end_that_there_is_and_says_so(make: Callable[..., Stage]) -> None:
    stage = make([[b"a"], [b"b"]], endless=True)
    stage.link.deliver(Drain())
    stage.steps(1)
    assert stage.sent(EndOfInput) == []
    stage.link.deliver(Drain())
    stage.steps(3)
    assert (stage.sent(EndOfInput), stage.reader.read) == ([EndOfInput()], 2)


def test_a_source_without_an_end_reads_nothing_more_once_it_is_drained(make: Callable[..., Stage]) -> None:
    stage = make([[b"a"], [b"b"]], endless=True)
    stage.steps(1)
    stage.link.deliver(Drain())
    with patch.object(ScriptedReader, "bound", SourceReader.bound):
        stage.steps(3)
    trigger(stage, 1, final=True)
    stage.steps(1)
    assert (stage.sent(EndOfInput), stage.reader.read) == ([EndOfInput()], 1)
    (ack,) = stage.sent(Ack)
    assert (ack.snapshot.positions[0].position, ack.snapshot.finished) == (1, False)


def test_the_end_of_each_stage_is_said_once_and_a_later_one_goes_on_until_it_is_bounded(
    make: Callable[..., Stage],
) -> None:
    stage = make([[b"a"], [b"b"]], endless=True, stage=1)
    stage.link.deliver(Drain(0))
    stage.steps(4)
    assert (stage.sent(EndOfInput), stage.reader.read) == ([EndOfInput(0, 1)], 2)
    stage.link.deliver(Drain(1))
    stage.steps(3)
    assert stage.sent(EndOfInput) == [EndOfInput(0, 1), EndOfInput(1)]


COUNT = WindowAggregate(Tumbling("1h"), 0, Count(), "count", Json())


def counting(store: KeyedStateStore) -> Dataflow:
    """Return the graph of a subtask that owns number 0, whose sink takes final windows."""
    return Dataflow([Node("in"), Node("count", ("in",), COUNT), Node("out", ("count.final",))], store, numbers=[0])


def test_a_drain_closes_open_windows_before_it_says_that_all_is_read(make: Callable[..., Stage]) -> None:
    stage = make([[b"a"], [b"a"]], endless=True, flow=counting)
    stage.link.deliver(Drain())
    stage.steps(2)
    assert (stage.sink.written, stage.sent(EndOfInput)) == (0, [])
    stage.steps(1)
    assert (stage.sink.written, stage.sent(EndOfInput)) == (1, [EndOfInput()])
    stage.steps(2)
    assert stage.sink.written == 1


def test_the_end_of_bounded_input_closes_no_window(make: Callable[..., Stage]) -> None:
    stage = make([[b"a"]], endless=False, flow=counting)
    stage.steps(3)
    assert (stage.sink.written, stage.sent(EndOfInput)) == (0, [EndOfInput()])
    stage.link.deliver(Drain(1))
    stage.steps(3)
    assert (stage.sink.written, stage.sent(EndOfInput)) == (0, [EndOfInput()])


def test_a_drain_that_is_asked_for_when_the_end_is_said_closes_open_windows_once(make: Callable[..., Stage]) -> None:
    stage = make([[b"a"]], endless=False, flow=counting)
    stage.steps(3)
    stage.link.deliver(Drain())
    stage.steps(3)
    assert (stage.sink.written, stage.sent(EndOfInput)) == (1, [EndOfInput()])


def test_a_plain_stop_in_a_drain_closes_no_window(make: Callable[..., Stage]) -> None:
    stage = make([[b"a"], [b"b"]], endless=True, flow=counting)
    stage.link.deliver(Drain())
    trigger(stage, 1, final=True)
    stage.steps(4)
    assert stage.sink.written == 0


def test_windows_of_a_stage_close_when_that_stage_is_through(make: Callable[..., Stage]) -> None:
    stage = make([[b"a"]], endless=True, stage=1, flow=counting)
    stage.link.deliver(Drain())
    stage.steps(3)
    assert (stage.sink.written, stage.sent(EndOfInput)) == (0, [EndOfInput(0, 1)])
    stage.link.deliver(Drain(1))
    stage.steps(2)
    assert (stage.sink.written, stage.sent(EndOfInput)) == (1, [EndOfInput(0, 1), EndOfInput(1)])


def test_the_end_of_the_input_is_said_once(make: Callable[..., Stage]) -> None:
    stage = make([[b"a"]], endless=False)
    stage.steps(4)
    assert stage.sent(EndOfInput) == [EndOfInput()]


def test_a_subtask_at_its_end_takes_part_in_every_later_checkpoint(make: Callable[..., Stage]) -> None:
    stage = make([[b"a"]], endless=False)
    stage.steps(2)
    for number in (1, 2):
        trigger(stage, number)
        complete(stage, number)
        stage.steps(2)
    assert [ack.snapshot.finished for ack in stage.sent(Ack)] == [True, True]
    assert stage.sent(Committed) == [Committed(CheckpointId(1)), Committed(CheckpointId(2))]


def test_a_subtask_that_was_restored_at_its_end_reads_nothing_and_takes_part(make: Callable[..., Stage]) -> None:
    stage = make([], endless=False)
    trigger(stage, 1)
    stage.steps(2)
    assert stage.sent(EndOfInput) == [EndOfInput()]
    assert [ack.snapshot.finished for ack in stage.sent(Ack)] == [True]
    assert stage.reader.read == 0


def test_of_two_checkpoints_in_flight_the_first_completion_commits_the_first_transaction_only(
    make: Callable[..., Stage],
) -> None:
    stage = make([[b"a"], [b"b"]])
    stage.steps(1)
    trigger(stage, 1)
    stage.steps(1)
    trigger(stage, 2)
    stage.steps(1)
    complete(stage, 1)
    stage.steps(1)
    assert [line for line in stage.sink.log if line.startswith("commit")] == ["commit t@1 by 1"]
    second = stage.sent(Ack)[1]
    assert [committable.name for committable in second.snapshot.committables] == ["t@1", "t@2"]


class LosingSink(RecordingSink):
    """Finds that the transaction of checkpoint 1 is gone."""

    def commit(self, committable: Committable, proof: Complete) -> None:
        if committable.checkpoint_id == 1:
            raise TransactionLost(f"{committable.name} is gone")
        super().commit(committable, proof)


def test_behind_a_lost_transaction_nothing_is_committed_so_that_it_can_be_written_again(
    make: Callable[..., Stage],
) -> None:
    stage = make([[b"a"], [b"b"]], sink=LosingSink())
    for number in (1, 2):
        stage.steps(1)
        trigger(stage, number)
    stage.steps(1)
    complete(stage, 1)
    complete(stage, 2)
    with pytest.raises(TransactionLost):
        stage.steps(1)
    assert not [line for line in stage.sink.log if line.startswith("commit")]
    assert stage.sent(Committed) == []


def test_after_a_final_trigger_nothing_more_is_read(make: Callable[..., Stage]) -> None:
    stage = make([[b"a"], [b"b"], [b"c"]])
    stage.steps(1)
    trigger(stage, 1, final=True)
    stage.steps(3)
    assert stage.reader.read == 1


def test_finish_ends_the_run_and_aborts_the_open_transaction_only(make: Callable[..., Stage]) -> None:
    stage = make([[b"a"]])
    stage.link.deliver(Finish())
    stage.run()
    assert stage.sink.log[-1] == "abort open"


def test_being_fenced_ends_the_run_without_a_commit(make: Callable[..., Stage]) -> None:
    stage = make([[b"a"]])
    stage.steps(1)
    trigger(stage, 1)
    stage.steps(1)
    stage.link.deliver(FencedOff("attempt 2 runs"))
    complete(stage, 1)
    with pytest.raises(Fenced, match="attempt 2 runs"):
        stage.run()
    assert not [line for line in stage.sink.log if line.startswith("commit")]


def test_progress_names_the_open_and_the_pending_transactions(make: Callable[..., Stage]) -> None:
    stage = make([[b"a"]])
    stage.steps(1)
    progress = stage.sent(Progress)[0]
    assert progress.records_in == 1
    assert progress.pending_transactions == ()


def test_small_state_goes_with_the_acknowledgement_whatever_the_disk_says(make: Callable[..., Stage]) -> None:
    stage = make([[b"a"]], inline_bytes=1_000)
    stage.storage.refuse = "the disk is full"
    stage.steps(1)
    trigger(stage, 1)
    stage.steps(1)
    (ack,) = stage.sent(Ack)
    assert ack.snapshot.state.manifest is None
    assert ack.snapshot.state.path == "chk-1/subtask-0"
    assert (ack.write_ms, ack.store_ms, stage.sent(Decline)) == (0, 0, [])


def test_reports_say_it_operator_by_operator_at_first_and_every_five_seconds(make: Callable[..., Stage]) -> None:
    clock = ManualClock(1_000_000)
    stage = make([[b"a", b"b"], [b"c"]], clock=clock)
    stage.subtask.begin()
    for _ in range(13):
        stage.steps(1)
        clock.advance(500)
    told = enumerate(stage.sent(Progress))
    counted = [(number, each.figures) for number, each in told if each.figures and RECORDS_IN.name in each.figures]
    assert [number for number, _ in counted] == [0, 10]
    own = [RECORDS_IN.by_operator({"in": 3}), BYTES_IN.by_operator({"in": 24}), RECORDS_OUT.by_operator({"out": 3})]
    assert {name: counted[-1][1][name] for name, _ in own} == dict(own)
    assert counted[-1][1].keys() == {figure.name for figure in FIGURES}, "each figure is counted somewhere"
