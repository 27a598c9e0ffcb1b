"""A subtask on its stage; a test plays the coordinator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.operators.kit import row
from tests.runtime.kit import FakeStorage, RecordingSink, ScriptedReader, Stage
from twopc.clock import Clock, SystemClock
from twopc.config import RunSettings
from twopc.context import SubtaskContext
from twopc.graph import FAIL
from twopc.operators import Dataflow, KeyedStateStore, Step
from twopc.operators.time_bound import unbounded
from twopc.protocol.ids import AttemptId, SubtaskIndex
from twopc.runtime.batch_size import BatchSize
from twopc.runtime.dependencies import SubtaskDependencies
from twopc.runtime.inputs import Inputs
from twopc.runtime.link import MemoryLink
from twopc.runtime.outputs import Outputs
from twopc.runtime.record_errors import RecordErrors
from twopc.runtime.repartition_times import RepartitionTimes
from twopc.runtime.state import SubtaskStore
from twopc.runtime.subtask import Subtask
from twopc.state.keyed import KeyedState
from twopc.state.memory import MemoryBackend
from twopc.testing.memory.subtasks import AtOnce
from twopc.transaction_group import GroupWriter, TransactionGroup


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Stage]:
    def build(
        batches: list[list[bytes]],
        *,
        endless: bool = True,
        sink: RecordingSink | None = None,
        beside: RecordingSink | None = None,
        clock: Clock | None = None,
        follower: str | None = None,
        inline_bytes: int = 0,
        steps: Sequence[Step] = (),
        flow: Callable[[KeyedStateStore], Dataflow] | None = None,
        stage: int = 0,
        reader: type[ScriptedReader] = ScriptedReader,
    ) -> Stage:
        source = reader(batches, endless)
        sink = sink or RecordingSink()
        storage = FakeStorage()
        link, backend = MemoryLink(), MemoryBackend()
        sinks = {"out": sink} if beside is None else {"out": sink, "beside": beside}
        context = SubtaskContext("job", AttemptId(1), 1, RunSettings(), SubtaskIndex(0))
        state = KeyedState(backend)
        dataflow = row(steps, state) if flow is None else flow(state)
        parts = SubtaskDependencies(
            inputs=Inputs({"in": source}, {"in": stage}),
            dataflow=dataflow,
            record_errors=RecordErrors("job", {"in": FAIL}, {}),
            outputs=Outputs([GroupWriter.open(TransactionGroup(each, (each,)), sinks, context) for each in sinks]),
            store=SubtaskStore(SubtaskIndex(0), backend, storage, tmp_path, inline_bytes),
            link=link,
            clock=clock or SystemClock(),
            snapshot_executor=AtOnce(),
            store_executor=AtOnce(),
            commit_executor=AtOnce(),
            repartition_times=RepartitionTimes({}, {}, {}, dataflow.marks, state, unbounded),
        )
        subtask = Subtask(
            SubtaskIndex(0), parts, follower=follower, silence_limit_seconds=60, batch_size=BatchSize(1, 1_000)
        )
        subtask.begin()
        return Stage(source, sink, storage, link, subtask, parts.dataflow)

    return build
