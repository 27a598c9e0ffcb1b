"""Files that one sink of the job writes: no Kafka, through the simple door to the contract of a sink.

As `examples/file_sink.py`: a transaction is a hidden file, pre-committing makes it durable, committing renames it. What
is there outlives every process. A file that can't be made durable now declines the checkpoint, and stays open.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tests.simulation.job import FILES, lane_of
from tests.simulation.world import World
from twopc.context import JobContext, SubtaskContext
from twopc.errors import CheckpointDeclined, TransactionLost
from twopc.protocol.facts import Committable
from twopc.protocol.ids import AttemptId, CheckpointId
from twopc.protocol.messages import Complete
from twopc.record import Batch
from twopc.sink import Outcome, PreCommit, Settled, SinkWriter
from twopc.two_phase import TwoPhaseCommitSink

POSITIONS = ("the first", "a later")


@dataclass(slots=True, eq=False)
class HiddenFile:
    """A transaction."""

    name: str
    attempt: AttemptId
    values: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return self.name


@dataclass(slots=True)
class SimFiles:
    """The folder. `on_commit` is told the committable's name before its file becomes visible."""

    world: World
    on_commit: Callable[[str], None] = lambda name: None
    hidden: dict[str, HiddenFile] = field(default_factory=dict)
    visible: dict[str, tuple[CheckpointId, list[str]]] = field(default_factory=dict)

    def read(self, lane: int) -> list[str]:
        """What a reader sees of a lane, in the order of the checkpoints."""
        files = sorted(self.visible.values(), key=lambda each: each[0])
        return [value for _, values in files for value in values if lane_of(value) == lane]

    def settle(self, item: Committable, *, confirmed: bool = False) -> Settled:
        """Rename the file, if that is still to be done."""
        if item.name in self.visible or confirmed:
            return Settled(item, Outcome.ALREADY_COMMITTED, "it is there")
        file = self.hidden.pop(item.payload["hidden"], None)
        if file is None:
            return Settled(item, Outcome.LOST, "the file is gone", certain=True)
        self.on_commit(item.name)
        self.visible[item.name] = (item.checkpoint_id, file.values)
        return Settled(item, Outcome.COMMITTED, "renamed")


class SimFileSink(TwoPhaseCommitSink[HiddenFile]):
    """One copy for all processes; what a subtask opens is a copy of its own."""

    def __init__(self, files: SimFiles, context: SubtaskContext | None = None) -> None:
        self._files = files
        self._world = files.world
        self._context = context
        self._begun = 0

    def open_writer(self, context: SubtaskContext) -> SinkWriter:
        return TwoPhaseCommitSink.open_writer(SimFileSink(self._files, context), context)

    def begin(self) -> HiddenFile:
        context = self._opened
        self._begun += 1
        file = HiddenFile(f"{FILES}-{context.attempt}-{context.subtask}-{self._begun}", context.attempt)
        self._files.hidden[file.name] = file
        return file

    def write(self, txn: HiddenFile, batch: Batch) -> int:
        txn.values.extend(batch.values)
        return len(batch)

    def pre_commit(self, txn: HiddenFile, request: PreCommit) -> Committable | None:
        if not txn.values:
            return None
        if self._world.strikes("file not synced", self._world.faults.files_decline):
            self._world.coverage[f"declined as {POSITIONS[self._world.faults.sinks.index(FILES) > 0]} group"] += 1
            raise CheckpointDeclined("simulated: the file could not be made durable in time")
        name = f"{txn.name}@{request.checkpoint_id}"
        return Committable(name, request.checkpoint_id, self._opened.subtask, {"hidden": txn.name})

    def commit(self, committable: Committable, proof: Complete) -> None:
        settled = self._files.settle(committable)
        if settled.outcome is Outcome.LOST:
            raise TransactionLost(f"checkpoint {proof.checkpoint_id} has completed, but {settled.evidence}")

    def abort(self, txn: HiddenFile) -> None:
        self._files.hidden.pop(txn.name, None)

    def recover(
        self, context: JobContext, committables: Sequence[Committable], confirmed: frozenset[str]
    ) -> list[Settled]:
        return [self._files.settle(item, confirmed=item.name in confirmed) for item in committables]

    def abort_lingering(self, context: JobContext) -> list[str]:
        hidden = self._files.hidden
        lingering = [name for name, file in hidden.items() if file.attempt < context.attempt]
        for name in lingering:
            del hidden[name]
        return lingering

    @property
    def _opened(self) -> SubtaskContext:
        assert self._context is not None, "the sink was not opened"
        return self._context
