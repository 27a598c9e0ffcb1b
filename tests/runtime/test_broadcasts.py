"""The first read of a broadcast table: whole, unless nothing will look into it any more."""

from __future__ import annotations

from contextlib import ExitStack, nullcontext
from itertools import count
from types import SimpleNamespace
from typing import Any

from tests.plain_jobs import in_a_row
from twopc import Batch, KafkaSink, KafkaSource, RunSettings, Split
from twopc.context import SubtaskContext
from twopc.operators.broadcast import broadcast_tables
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex
from twopc.protocol.messages import FencedOff, Finish, Trigger
from twopc.runtime.broadcasts import Broadcasts
from twopc.runtime.link import ends_reading
from twopc.runtime.record_errors import RecordErrors
from twopc.state.keyed import KeyedState
from twopc.state.memory import MemoryBackend


class Long:
    """A source, its planner and its reader: of so many batches, which are empty."""

    def __init__(self, batches: int) -> None:
        self.left = batches
        self.opened = 0

    def from_beginning(self) -> Long:
        return self

    def open_planner(self, context: object) -> Any:
        plan = SimpleNamespace(plan=lambda known, bounded: [Split("products[0]", 0, [0, ""], [9, ""])])
        return nullcontext(plan)

    def open_reader(self, context: object, splits: object) -> Long:
        self.opened += 1
        return self

    def poll(self, timeout: float, most: int) -> Batch | None:
        self.left -= 1
        return None

    def finished(self) -> bool:
        return self.left <= 0

    def lag(self) -> int:
        return 7

    def close(self) -> None:
        """Nothing is open."""


def reading(source: Long) -> Broadcasts:
    definition = in_a_row("job", KafkaSource("in"), (), KafkaSink("out"))
    store = KeyedState(MemoryBackend())
    broadcasts = Broadcasts(definition, broadcast_tables(definition.operators), store, RecordErrors("job", {}, {}))
    broadcasts._sources = {"products": source}  # type: ignore[dict-item]
    return broadcasts


CONTEXT = SubtaskContext("job", AttemptId(1), 1, RunSettings(), SubtaskIndex(0))


def test_it_is_read_to_its_end_and_followed_from_there() -> None:
    source = Long(5)
    broadcasts = reading(source)
    with ExitStack() as closing:
        broadcasts.read(CONTEXT, closing, lambda: False)
        assert (source.left, source.opened, broadcasts.lag()) == (0, 2, 7)


def test_where_reading_ends_meanwhile_the_rest_is_left() -> None:
    source, asked = Long(1_000), count()
    with ExitStack() as closing:
        reading(source).read(CONTEXT, closing, lambda: next(asked) == 3)
    assert (source.left, source.opened) == (997, 1)


def test_reading_ends_with_a_last_checkpoint_and_with_the_attempt() -> None:
    assert ends_reading(Trigger(CheckpointId(1), final=True))
    assert not ends_reading(Trigger(CheckpointId(1), final=False))
    assert ends_reading(Finish())
    assert ends_reading(FencedOff("later"))
