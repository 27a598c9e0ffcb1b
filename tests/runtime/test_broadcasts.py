"""The first read of a broadcast table: whole, unless nothing will look into it any more."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from itertools import count
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.plain_jobs import in_a_row
from tests.rpc.kit import eventually
from twopc import Batch, ConfigurationError, KafkaSink, KafkaSource
from twopc.connect import RunSettings, Source, Split
from twopc.context import SubtaskContext
from twopc.errors import TwoPhaseCommitError, Unavailable
from twopc.operators.broadcast import broadcast_tables
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex
from twopc.protocol.messages import FencedOff, Finish, Trigger
from twopc.runtime.broadcasts import Broadcasts
from twopc.runtime.link import ends_reading
from twopc.runtime.new_splits import NewSplits
from twopc.runtime.record_errors import RecordErrors
from twopc.state.keyed import KeyedState
from twopc.state.memory import MemoryBackend


class Long:
    """A source, its planner and its reader: of so many batches, which are empty. `added` is what each look finds."""

    watch_ms: int | None = None
    reads_new = True

    def __init__(self, batches: int, added: Sequence[TwoPhaseCommitError | list[Split]] = ()) -> None:
        self.left = batches
        self.opened = 0
        self.read: list[Sequence[Split]] = []
        self._added = iter(added)
        self.looks: list[list[str]] = []

    def from_beginning(self) -> Long:
        return self

    def open_planner(self, context: object) -> Any:
        plan = SimpleNamespace(
            plan=lambda known, bounded: [Split("products[0]", 0, [0, ""], [9, ""])], added=self._look
        )
        return nullcontext(plan)

    def _look(self, read: Sequence[Split]) -> list[Split]:
        self.looks.append([each.id for each in read])
        found = next(self._added, [])
        if isinstance(found, TwoPhaseCommitError):
            raise found
        return found

    def open_reader(self, context: object, splits: Sequence[Split]) -> Long:
        self.opened += 1
        self.read.append(splits)
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


def test_what_is_new_is_followed_from_its_first_record_whatever_a_look_before_it_met() -> None:
    new = Split("products[1]", 1, [0, ""], None)
    source = Long(0, [Unavailable("away"), ConfigurationError("another topic"), [new]])
    source.watch_ms = 1
    broadcasts = reading(source)
    with ExitStack() as closing:
        broadcasts.read(CONTEXT, closing, lambda: False)
        eventually(lambda: len(source.looks) > 4, "it was looked for five times")
        broadcasts.follow()
        assert source.read[-1] == [new]
        assert broadcasts.lag() == 2 * 7
        assert source.looks[0] == ["products[0]"]
        assert source.looks[-1] == ["products[0]", "products[1]"]


@pytest.mark.parametrize("changes", [{"watch_ms": None}, {"reads_new": False}])
def test_a_source_that_is_not_to_be_looked_at_is_not(changes: dict[str, Any]) -> None:
    source = Long(0)
    source.watch_ms = 1
    vars(source).update(changes)
    assert NewSplits.of(cast(Source, source), CONTEXT, []) is None


def test_a_bounded_run_reads_nothing_that_comes_later() -> None:
    source = Long(0)
    source.watch_ms = 1
    bounded = replace(CONTEXT, settings=RunSettings(until_end=True))
    assert NewSplits.of(cast(Source, source), bounded, []) is None


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
