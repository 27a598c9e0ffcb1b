"""How large batches become while nobody makes objects of the values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from tests.operators.kit import row
from tests.runtime.kit import FakeStorage, ScriptedReader
from twopc.arrow import to_column
from twopc.clock import SystemClock
from twopc.graph import FAIL
from twopc.operators import Map, MapBatches, SinkOutput, Step
from twopc.operators.time_bound import unbounded
from twopc.protocol.ids import SubtaskIndex
from twopc.record import Batch, RecordError
from twopc.runtime.batch_size import MOST, MOST_PACKED, BatchSize
from twopc.runtime.dependencies import SubtaskDependencies
from twopc.runtime.inputs import Inputs
from twopc.runtime.link import MemoryLink
from twopc.runtime.outputs import Outputs, fail
from twopc.runtime.record_errors import RecordErrors
from twopc.runtime.repartition_times import RepartitionTimes
from twopc.runtime.state import SubtaskStore
from twopc.runtime.subtask import Subtask
from twopc.state.keyed import KeyedState
from twopc.state.memory import MemoryBackend
from twopc.testing.memory.subtasks import AtOnce
from twopc.testing.rows import InputRow

BATCHES = 20


@dataclass
class PackedReader(ScriptedReader):
    """Gives as many records as are asked for, their values packed."""

    batches: list[list[bytes]] = field(default_factory=list)
    endless: bool = True
    asked: list[int] = field(default_factory=list)

    def poll(self, timeout: float, most: int) -> Batch | None:
        self.asked.append(most)
        return Batch([InputRow(b"k", b"v")] * most, to_column(pa.array([b"v"] * most)))


class Writing(Outputs):
    """Asks for no object."""

    def write(self, outputs: Iterable[SinkOutput], refuse: Callable[[RecordError], Iterable[SinkOutput]] = fail) -> int:
        return sum(len(output.batch) for output in outputs)


class Untimed(BatchSize):
    """To it no record is slow, whatever the machine has to do."""

    def took(self, count: int, seconds: float, packed_bytes: int | None = None) -> None:
        super().took(count, 0.0, packed_bytes)


def asked_for(step: Step, folder: Path) -> int:
    """Return how many records are asked for at once, in the end, of a job of this one step."""
    backend, reader = MemoryBackend(), PackedReader()
    state = KeyedState(backend)
    dataflow = row([step], state)
    parts = SubtaskDependencies(
        inputs=Inputs({"in": reader}),
        dataflow=dataflow,
        outputs=Writing([]),
        record_errors=RecordErrors("job", {"in": FAIL}, {}),
        store=SubtaskStore(SubtaskIndex(0), backend, FakeStorage(), folder, 0),
        link=MemoryLink(),
        clock=SystemClock(),
        snapshot_executor=AtOnce(),
        store_executor=AtOnce(),
        commit_executor=AtOnce(),
        repartition_times=RepartitionTimes({}, {}, {}, dataflow.marks, state, unbounded),
    )
    size = Untimed.within(1, None)
    subtask = Subtask(SubtaskIndex(0), parts, follower=None, silence_limit_seconds=60, batch_size=size)
    subtask.begin()
    for _ in range(BATCHES):
        subtask.step()
    return reader.asked[-1]


def test_columns_that_nobody_takes_apart_come_in_greater_batches(tmp_path: Path) -> None:
    assert asked_for(MapBatches(lambda batch: batch), tmp_path) == MOST_PACKED


def test_objects_do_not(tmp_path: Path) -> None:
    assert asked_for(Map(bytes.upper), tmp_path) == MOST


def test_nor_do_records_of_which_nothing_comes_out(tmp_path: Path) -> None:
    assert asked_for(MapBatches(lambda batch: batch.slice(0, 0)), tmp_path) == MOST
