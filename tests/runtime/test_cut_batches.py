"""A batch that is cut between two records: what is behind the cut is in no checkpoint, and comes next."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from tests.operators.kit import row
from tests.runtime.kit import PARTITION, Stage, trigger
from twopc.clock import ManualClock
from twopc.operators import Map, Turn
from twopc.protocol.ids import CheckpointId
from twopc.protocol.messages import Ack, EndOfInput, Progress
from twopc.runtime.slow_function import CUT_SECONDS, SLOW_SECONDS, SlowFunctionWatch
from twopc.testing.rows import batch_of_values
from twopc.testing.states import DictStore


def cut_at(stages: list[Stage], element: bytes) -> Map:
    """Return a step that lets every batch be cut behind this element."""

    def function(value: bytes) -> bytes:
        if value == element:
            stages[0].dataflow.cut()
        return value

    return Map(function)


def cut_stage(make: Callable[..., Stage], element: bytes, **options: Any) -> Stage:
    stages: list[Stage] = []
    stages.append(make([[b"a", b"b", b"c"]], steps=[cut_at(stages, element)], **options))
    stages[0].steps(1)
    return stages[0]


def test_a_checkpoint_between_has_the_output_and_the_position_of_what_came_before_the_cut(
    make: Callable[..., Stage],
) -> None:
    stage = cut_stage(make, b"a")
    trigger(stage, 1)
    stage.steps(2)
    trigger(stage, 2)
    stage.steps(1)
    first, second = stage.sent(Ack)
    assert [position.position for position in first.snapshot.positions] == [1]
    assert [position.position for position in second.snapshot.positions] == [3]
    assert first.snapshot.positions[0].split == str(PARTITION)
    assert [line for line in stage.sink.log if "pre-commit" in line] == ["pre-commit 1 a", "pre-commit 2 bc"]


def test_nothing_is_read_before_what_waits_is_done(make: Callable[..., Stage]) -> None:
    stage = cut_stage(make, b"b")
    polls = len(stage.reader.waited)
    stage.steps(1)
    assert len(stage.reader.waited) == polls


def test_a_subtask_is_not_at_its_end_while_records_wait(make: Callable[..., Stage]) -> None:
    stage = cut_stage(make, b"a", endless=False)
    trigger(stage, 1)
    stage.subtask._on(stage.link.receive(0)[0])
    assert not stage.sent(EndOfInput)
    assert not stage.sent(Ack)[0].snapshot.finished
    stage.steps(2)
    assert stage.sent(EndOfInput)


def test_what_waits_at_the_final_checkpoint_is_left_for_the_next_run(make: Callable[..., Stage]) -> None:
    stage = cut_stage(make, b"a")
    trigger(stage, 1, final=True)
    stage.steps(3)
    (ack,) = stage.sent(Ack)
    assert ack.snapshot.positions[0].position == 1
    assert stage.sink.log[-1] == "begin", "nothing was written behind it"
    assert ack.checkpoint_id == CheckpointId(1)


def test_a_batch_that_lasts_is_cut_from_beside_the_loop() -> None:
    clock, entered, seen = ManualClock(), threading.Event(), threading.Event()

    def wait(value: int) -> int:
        entered.set()
        seen.wait(60)
        return value

    dataflow = row((Map(wait),), DictStore())
    watch = SlowFunctionWatch(dataflow, clock, lambda _: None)
    dataflow.put(Turn.of("in", batch_of_values(1, 2, 3)))
    outputs: list[list[int]] = []

    def advance() -> None:
        with watch.batch():
            outputs.append([value for output in dataflow.advance()[1] for value in output.batch.values])

    loop = threading.Thread(target=advance)
    loop.start()
    assert entered.wait(60)
    clock.advance(int(CUT_SECONDS * 500))
    watch.look()
    clock.advance(int(CUT_SECONDS * 1000))
    watch.look()
    seen.set()
    loop.join(60)
    assert outputs == [[1]]
    assert [row.offset() for row in dataflow.waiting_rows("in")] == [1, 2]


def test_a_function_that_does_not_return_is_told_with_its_record() -> None:
    clock, told = ManualClock(), list[str]()

    def enrich(value: int) -> int:
        for _ in range(5):
            clock.advance(int(SLOW_SECONDS * 1000))
            watch.look()
        return value

    dataflow = row((Map(enrich),), DictStore())
    watch = SlowFunctionWatch(dataflow, clock, told.append)
    dataflow.put(Turn.of("in", batch_of_values(1)))
    with watch.batch():
        dataflow.advance()
    assert len(told) == 4
    assert "enrich) at record in[0]@0 for 4 s" in told[-1]
    watch.look()
    assert len(told) == 4, "it has returned"


def test_what_is_slow_goes_to_the_coordinator_though_the_loop_stands(make: Callable[..., Stage]) -> None:
    stage = make([])
    stage.subtask._send_slow("map(enrich) at record in[0]@0 for 4 s")
    assert stage.sent(Progress)[-1].slow == "map(enrich) at record in[0]@0 for 4 s"
