"""A batch with records of several partition numbers makes what each record makes that comes alone, whatever cuts it."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from tests.operators.kit import Node, put_through
from twopc import Context, Json, Processor, Record
from twopc.operators import Dataflow, Process, WindowAggregate
from twopc.operators.sink_output import SinkOutput
from twopc.operators.stream_join_step import JoinStreams
from twopc.operators.window_step import Reduce
from twopc.record import RecordError
from twopc.testing.rows import InputRow, batch_of
from twopc.testing.states import DictStore
from twopc.windows import Session, Tumbling

Told = dict[int, list[tuple[Any, ...]]]
Cut = Callable[[], None]


def divided(cut: Cut) -> Callable[[Any, Any], Any]:
    def divide(one: Any, other: Any) -> Any:
        cut()
        return [one, other, 1 / (other or one)]

    return divide


def summed(cut: Cut) -> Callable[[Any, Any], Any]:
    def add(total: int, value: int) -> int:
        cut()
        return total + value * (1 // value)

    return add


def processor(cut: Cut) -> Processor:
    class Later(Processor):
        def process(self, record: Record, context: Context) -> Iterator[Record]:
            cut()
            context.set_timer((record.timestamp or 0) + 7)
            yield record.replace(value=1 / record.value)

        def on_timer(self, at: int, context: Context) -> Iterator[Record]:
            cut()
            yield Record(key=b"timer", value=at, timestamp=at)

    return Later()


STEPS: dict[str, Callable[[Cut], Any]] = {
    "join": lambda cut: JoinStreams(divided(cut), "outer", 10, 0, "op", (Json(), Json())),
    "tumbling": lambda cut: WindowAggregate(Tumbling("10ms"), 0, Reduce(summed(cut)), "op", Json()),
    "session": lambda cut: WindowAggregate(Session(gap="5ms"), 3, Reduce(summed(cut)), "op", Json()),
    "process": lambda cut: Process(processor(cut), "op"),
}


class Flow:
    """An operator of two inputs, or of one, whose user function cuts the loop now and then."""

    def __init__(self, kind: str, dice: random.Random | None) -> None:
        self.errors: defaultdict[int, list[int]] = defaultdict(list)
        self._dice = dice
        inputs = ("left", "right") if kind == "join" else ("left",)
        step = STEPS[kind](self._cut)
        output = "op" if kind in ("join", "process") else "op.final"
        nodes = [*map(Node, inputs), Node("op", inputs, step), Node("out", (output,))]
        self._flow = Dataflow(nodes, DictStore(), self._refuse)

    def put(self, source: str, rows: Sequence[InputRow]) -> Told:
        told: Told = defaultdict(list)
        for output in put_through(self._flow, source, batch_of(rows)):
            batch = output.batch
            for row, *rest in zip(batch.rows, batch.keys, batch.values, batch.timestamps, strict=True):
                told[row.partition() or 0].append((rest[0], repr(rest[1]), rest[2]))
        return told

    def _cut(self) -> None:
        if self._dice is not None and self._dice.random() < 0.3:
            self._flow.cut()

    def _refuse(self, source: str, error: RecordError) -> list[SinkOutput]:
        self.errors[error.row.partition() or 0].append(error.row.offset() or 0)
        return []


def rows_of(dice: random.Random) -> list[InputRow]:
    """Return some of three partition numbers, of which some have no time, or a value on which functions raise."""
    rows, at = [], 0
    for offset in range(dice.randint(1, 25)):
        at += dice.randrange(6)
        number, time = dice.randrange(3), None if dice.random() < 0.1 else at
        key = b"%d-%d" % (number, dice.randrange(2))
        value = dice.choice([0, 1, 1, 1])
        rows.append(InputRow(value, offset_=offset, key_=key, timestamp_=time, partition_=number))
    return rows


@pytest.mark.parametrize("kind", STEPS)
def test_it_makes_what_each_record_makes_alone(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twopc.operators.time_queue.DUE_AT_ONCE", 1)
    came = 0
    for seed in range(60):
        dice = random.Random(seed)
        at_once, alone = Flow(kind, dice), Flow(kind, None)
        for source in ("left", "right") if kind == "join" else ("left", "left"):
            rows = rows_of(dice)
            expected: Told = defaultdict(list)
            for row in rows:
                for number, told in alone.put(source, [row]).items():
                    expected[number] += told
            assert at_once.put(source, rows) == expected, f"seed {seed}"
            came += sum(map(len, expected.values()))
        assert at_once.errors == alone.errors, f"seed {seed}"
    assert came > 300, "something comes out"
