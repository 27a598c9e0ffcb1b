"""Puts one subtask together: restores its state, opens its connectors, and gives the loop what it works with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from twopc.clock import Clock
from twopc.errors import TwoPhaseCommitError
from twopc.faults.points import CrashPoint, reached
from twopc.graph import JobDefinition
from twopc.graph.counted_time import with_counted_time
from twopc.graph.operator import Operator
from twopc.operators import Dataflow
from twopc.operators.broadcast import broadcast_tables, feeding_broadcasts
from twopc.operators.busy_time import BusyTime
from twopc.operators.time_ahead import Bound, say_times_ahead, set_time_back
from twopc.operators.time_bound import ahead_of
from twopc.partition_groups import owned
from twopc.protocol.ids import CheckpointId
from twopc.protocol.messages import Failed
from twopc.runtime.batch_size import BatchSize
from twopc.runtime.broadcasts import Broadcasts
from twopc.runtime.dependencies import SubtaskDependencies
from twopc.runtime.event_time_order import orders_of
from twopc.runtime.inputs import Inputs
from twopc.runtime.link import Link
from twopc.runtime.outputs import Outputs
from twopc.runtime.record_errors import RecordErrors
from twopc.runtime.repartition_times import RepartitionTimes
from twopc.runtime.spec import SubtaskSpec
from twopc.runtime.state import SubtaskStore
from twopc.runtime.subtask import Subtask
from twopc.source import SourceReader
from twopc.state.backend import StateBackend
from twopc.state.keyed import KeyedState
from twopc.state.layout import parse_snapshot_path
from twopc.state.restore import restore_state
from twopc.state.schema_check import drop_undeclared, refuse_moved_keys
from twopc.state.serdes import check_serdes, write_serdes
from twopc.state.snapshot_store import SnapshotStore
from twopc.transaction_group import GroupWriter

SILENCE_MIN_SECONDS = 120.0


class AttachedLink(Link, Protocol):
    """A link that the coordinator has to accept first."""

    def reading_ends(self) -> bool:
        """Whether nothing will be read any more, by what has come and stays to be received."""
        ...

    def await_welcome(self, timeout: float) -> None:
        """Return when it has; raise Fenced if it turns the subtask away, Unavailable after `timeout` seconds."""
        ...


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The surroundings of a subtask, which its host gives.

    `storage` is where checkpoints are stored, `backend` what keeps the state meanwhile, `work_folder` a place of its
    own on this machine. `executor` makes, under a name for people, what runs one task at a time, in order.
    """

    link: AttachedLink
    clock: Clock
    storage: SnapshotStore
    backend: type[StateBackend]
    work_folder: Path
    executor: Callable[[str], Executor]


def assemble(
    definition: JobDefinition, spec: SubtaskSpec, around: Surroundings, closing: ExitStack
) -> SubtaskDependencies:
    """Return the parts of a subtask that is ready to begin; `closing` lets go of all that was opened for it."""
    reached(CrashPoint.BEFORE_RESTORE, checkpoint=_restored(spec), subtask=spec.subtask)
    backend = _state(definition, spec, around)
    closing.callback(backend.close)
    context = spec.context
    record_errors = RecordErrors(definition.name, definition.error_policies, definition.sinks)
    tables = broadcast_tables(definition.operators)
    broadcasts = Broadcasts(definition, tables, KeyedState(backend), record_errors) if tables else None
    if broadcasts is not None:
        # Like the state, before the welcome: whoever only reads is in nobody's way, however long it takes.
        broadcasts.read(context, closing, around.link.reading_ends)
    # A process that was held up until its attempt was over must not open anything: it would only be in the way.
    around.link.await_welcome(patience_seconds(spec))
    writers: list[GroupWriter] = []
    for group in spec.groups:
        writers.append(GroupWriter.open(group, definition.sinks, context))
        closing.callback(writers[-1].writer.close)
    reached(CrashPoint.BEFORE_SEEK, checkpoint=_restored(spec), subtask=spec.subtask)
    readers: dict[str, SourceReader] = {}
    for operator, source in definition.sources.items():
        readers[operator] = source.open_reader(context, [split for split in spec.splits if split.source == operator])
        closing.callback(readers[operator].close)
    snapshot_executor, store_executor, commit_executor = map(
        around.executor, ("twopc-snapshot", "twopc-store", "twopc-commit")
    )
    # The first hands over to the second, so the second is closed after it.
    for executor in (store_executor, snapshot_executor, commit_executor):
        closing.callback(executor.shutdown, wait=True, cancel_futures=True)
    numbers = owned(spec.splits, definition.keyed_sources)
    latest = ahead_of(around.clock, spec.settings.max_time_ahead_ms)
    state = KeyedState(backend)
    busy = BusyTime(around.clock.monotonic)
    dataflow = Dataflow(_operators(definition), state, record_errors.refuse, numbers, tables, latest, busy)
    closing.callback(dataflow.close)
    inline_bytes = spec.settings.inline_bytes(spec.parallelism)
    return SubtaskDependencies(
        inputs=Inputs(
            readers,
            definition.stages,
            orders_of(
                definition,
                readers,
                spec.settings.max_task_idle_ms / 1000,
                around.clock,
                together=dataflow.takes_several,
            ),
        ),
        dataflow=dataflow,
        outputs=Outputs(writers, [output for snapshot in spec.snapshots for output in snapshot.outputs]),
        record_errors=record_errors,
        store=SubtaskStore(spec.subtask, backend, around.storage, around.work_folder, inline_bytes),
        link=around.link,
        clock=around.clock,
        snapshot_executor=snapshot_executor,
        store_executor=store_executor,
        commit_executor=commit_executor,
        repartition_times=RepartitionTimes.of(definition, dataflow.marks, state, latest),
        broadcasts=broadcasts,
    )


def subtask_of(spec: SubtaskSpec, parts: SubtaskDependencies) -> Subtask:
    """Return the subtask that is made of these parts."""
    # A batch of fewer records than may be in flight at a time would never have so many in flight.
    least = max(spec.settings.batch_records_min, parts.dataflow.concurrency)
    return Subtask(
        spec.subtask,
        parts,
        follower=spec.follower,
        silence_limit_seconds=patience_seconds(spec),
        base=spec.base,
        batch_size=BatchSize.within(least, spec.settings.batch_records_max),
    )


def failure_of(error: BaseException) -> Failed:
    """Return how the coordinator is told what a subtask ended with."""
    if isinstance(error, TwoPhaseCommitError):
        return Failed(type(error).__name__, str(error), error.restartable)
    return Failed(type(error).__name__, f"{type(error).__name__}: {error}", restartable=isinstance(error, Exception))


def patience_seconds(spec: SubtaskSpec) -> float:
    """Return how long a subtask goes on without a word of the coordinator."""
    settings = spec.settings
    return max(SILENCE_MIN_SECONDS, 2 * (settings.checkpoint_interval_ms + settings.checkpoint_timeout_ms) / 1000)


def _operators(definition: JobDefinition) -> Sequence[Operator]:
    """Return the operators that a subtask runs."""
    fed, met = feeding_broadcasts(definition.operators), frozenset().union(*definition.met_by_marks.values())
    return with_counted_time([each for each in definition.operators if each.id not in fed], met)


def _state(definition: JobDefinition, spec: SubtaskSpec, around: Surroundings) -> StateBackend:
    numbers = owned(spec.splits, definition.keyed_sources)
    backend = restore_state(around.storage, spec.snapshots, numbers, spec.subtask, around.work_folder, around.backend)
    try:
        drop_undeclared(backend, definition.state_serdes, frozenset(spec.settings.drop_states))
        refuse_moved_keys(backend, spec.moved_keys)
        check_serdes(backend, definition.state_serdes)
        write_serdes(backend, definition.state_serdes)
        now, ahead_ms = around.clock.now().unix_ms, spec.settings.max_time_ahead_ms
        if spec.settings.set_time_back:
            set_time_back(definition.operators, backend, Bound(now, now + ahead_ms))
        else:
            say_times_ahead(backend, Bound(now, now + ahead_ms))
    except BaseException:
        backend.close()
        raise
    return backend


def _restored(spec: SubtaskSpec) -> CheckpointId:
    """Return the checkpoint that the subtask starts from; 0 for none."""
    return max((parse_snapshot_path(snapshot.state.path)[0] for snapshot in spec.snapshots), default=CheckpointId(0))
