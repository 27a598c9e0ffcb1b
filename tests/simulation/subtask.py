"""A subtask process: the production `Subtask` with its store and commit threads as lanes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from contextlib import ExitStack
from functools import partial
from typing import Any

from tests.simulation.broker import SimBroker
from tests.simulation.clocks import SimClock
from tests.simulation.job import with_cuts
from tests.simulation.joins import idle_seconds
from tests.simulation.network import Peer, SimLink
from tests.simulation.process import Lane
from tests.simulation.snapshots import SimSnapshots, local_disk
from tests.simulation.source import ARRIVE_MS, AT_ONCE, SimReader
from tests.simulation.world import World
from twopc.errors import (
    CheckpointCorrupted,
    ConfigurationError,
    Fenced,
    ProtocolViolation,
    TwoPhaseCommitError,
    Unavailable,
)
from twopc.faults.points import CrashPoint, reached
from twopc.graph import JobDefinition
from twopc.operators import Dataflow, KeyedStateStore
from twopc.operators.broadcast import BroadcastTable, broadcast_tables, feeding_broadcasts
from twopc.operators.sink_output import OnError
from twopc.operators.time_bound import unbounded
from twopc.partition_groups import owned
from twopc.protocol.messages import Failed
from twopc.runtime.batch_size import BatchSize
from twopc.runtime.broadcasts import Broadcasts
from twopc.runtime.dependencies import SubtaskDependencies
from twopc.runtime.event_time_order import orders_of
from twopc.runtime.inputs import Inputs
from twopc.runtime.outputs import Outputs
from twopc.runtime.record_errors import RecordErrors
from twopc.runtime.repartition_times import RepartitionTimes
from twopc.runtime.spec import SubtaskSpec
from twopc.runtime.state import SubtaskStore
from twopc.runtime.subtask import Subtask
from twopc.state.keyed import KeyedState
from twopc.state.memory import MemoryBackend
from twopc.state.restore import restore_state
from twopc.testing.memory.subtasks import AtOnce
from twopc.transaction_group import GroupWriter

STEP_MS = (1, 40)
"""How long a turn of the loop takes: how late a message is noticed."""

IDLE_MS = 1_000
SILENCE_SECONDS = 60.0
LAST_WORDS_MS = 2_000

CUT_OFF_MS = 90_000
"""Longer than the calm phase: without it the job has to come to its end."""

_NOBODY_WAITS: Future[Any] = Future()


class SimExecutor(Executor):
    """Runs one task at a time, in order, when its lane's turn comes."""

    def __init__(self, world: World, lane: Lane, on_end: Callable[[], None]) -> None:
        self._world = world
        self._lane = lane
        self._on_end = on_end
        self._tasks: deque[Callable[[], Any]] = deque()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self._tasks.append(lambda: fn(*args, **kwargs))
        self._world.after(self._world.delay(20), self._run_one, self._lane)
        return _NOBODY_WAITS

    def _run_one(self) -> None:
        if self._tasks:
            self._tasks.popleft()()
            self._on_end()


class SimSubtask:
    """One process. `failed` and `ended` say how it ended; what one meets that is `abandoned` concerns nobody."""

    def __init__(
        self,
        world: World,
        spec: SubtaskSpec,
        pid: int,
        broker: SimBroker,
        snapshots: SimSnapshots,
        definition: JobDefinition,
        dial: Callable[[], Peer | None],
        on_exit: Callable[[], None],
    ) -> None:
        self.process = world.process(f"subtask-{spec.subtask}.{spec.attempt}", "subtask")
        self.failed = False
        self.ended = False
        self.abandoned = False
        self._world = world
        self._spec = spec
        self._broker = broker
        self._snapshots = snapshots
        self._definition = definition
        self._lane = Lane(self.process, "loop")
        self._store, self._commits = Lane(self.process, "store"), Lane(self.process, "commit")
        self._lanes = (self._lane, self._store, self._commits)
        self._on_exit = on_exit
        self._subtask: Subtask | None = None
        self._awaits_welcome = False
        self._readers: dict[str, SimReader] = {}
        self._step_at: int | None = None
        self._link = SimLink(
            world, Lane(self.process, "link"), spec.job, spec.attempt, spec.subtask, pid, dial, self._woken
        )
        self._groups: list[GroupWriter] = []
        world.note(self.process.name, "starts")
        world.after(world.delay(60), self._start, self._lane)

    def died(self) -> None:
        self._link.lost()

    def cut_off(self) -> None:
        """Stand still for longer than the job may wait, the stream ended; not inside a call that the world waits in."""
        if self._subtask is not None and not any(lane.busy for lane in self._lanes):
            self._world.coverage["cut off"] += 1
            self._world.note(self.process.name, "IS CUT OFF")
            self.process.paused_until = self._world.now_ms + CUT_OFF_MS
            self._link.cut_off()

    def _start(self) -> None:
        """Wait for the coordinator's welcome, as the bootstrap does."""
        self._awaits_welcome = True
        self._world.after(int(SILENCE_SECONDS * 1000), partial(self._guarded, self._give_up), self._lane)
        self._guarded(self._begin_if_welcome)

    def _begin_if_welcome(self) -> None:
        if self._awaits_welcome and self._link.welcomed():
            self._awaits_welcome = False
            self._begin()

    def _give_up(self) -> None:
        if self._awaits_welcome:
            raise Unavailable("simulated: the coordinator never accepted this subtask")

    def _begin(self) -> None:
        strike = self._world.strikes("pause before opening the sink", self._world.faults.pause_at_start)
        if strike:
            self._world.coverage["pause before opening the sink"] += 1
            self._world.pause(self.process, "before it opens its sink", strike)
            self._world.after(0, self._begin, self._lane)
            return
        self._guarded(self._assemble)

    def _assemble(self) -> None:
        spec, world = self._spec, self._world
        reached(CrashPoint.BEFORE_RESTORE, subtask=spec.subtask)
        local = local_disk()
        numbers = owned(spec.splits, self._definition.keyed_sources)
        backend = restore_state(self._snapshots, spec.snapshots, numbers, spec.subtask, local / "work", MemoryBackend)
        context, definition = spec.context, self._definition
        for group in spec.groups:
            self._groups.append(GroupWriter.open(group, definition.sinks, context))
        reached(CrashPoint.BEFORE_SEEK, subtask=spec.subtask)
        record_errors = RecordErrors(definition.name, definition.error_policies, definition.sinks)
        tables = broadcast_tables(definition.operators)
        broadcasts = Broadcasts(definition, tables, KeyedState(backend), record_errors) if tables else None
        if broadcasts is not None:
            with ExitStack() as unread:
                broadcasts.read(context, unread, lambda: False)
        readers: dict[str, Any] = {
            name: source.open_reader(context, [split for split in spec.splits if split.source == name])
            for name, source in definition.sources.items()
        }
        self._readers = readers
        idle, clock = idle_seconds(world.faults), SimClock(world, self.process)
        state = KeyedState(backend)
        dataflow = self._dataflow(state, record_errors.refuse, numbers, tables)
        parts = SubtaskDependencies(
            inputs=Inputs(
                readers,
                definition.stages,
                orders=orders_of(definition, readers, idle, clock, together=dataflow.takes_several),
            ),
            dataflow=dataflow,
            outputs=Outputs(self._groups),
            record_errors=record_errors,
            store=SubtaskStore(
                spec.subtask,
                backend,
                self._snapshots,
                local / "snapshots",
                spec.settings.inline_bytes(spec.parallelism),
            ),
            link=self._link,
            clock=SimClock(world, self.process),
            snapshot_executor=AtOnce(),
            store_executor=SimExecutor(world, self._store, self._woken),
            commit_executor=SimExecutor(world, self._commits, self._woken),
            repartition_times=RepartitionTimes.of(definition, dataflow.marks, state, unbounded),
            broadcasts=broadcasts,
        )
        self._subtask = Subtask(
            spec.subtask,
            parts,
            follower=spec.follower,
            silence_limit_seconds=SILENCE_SECONDS,
            base=spec.base,
            batch_size=BatchSize(1, AT_ONCE),
        )
        self._subtask.begin()
        self._step_in(self._world.between(*STEP_MS))

    def _dataflow(
        self,
        state: KeyedStateStore,
        on_error: OnError,
        numbers: frozenset[int],
        tables: Mapping[str, BroadcastTable],
    ) -> Dataflow:
        """Return the graph of the job, in whose steps a batch may be cut behind a record."""
        world, fed = self._world, feeding_broadcasts(self._definition.operators)
        operators = [each for each in self._definition.operators if each.id not in fed]
        if not world.faults.waits_for:
            # What other jobs must have made is worked out without a drain.
            numbers = frozenset()
        if not world.faults.batch_cut:
            return Dataflow(operators, state, on_error, numbers, tables)

        def cut() -> None:
            if world.strikes("batch cut", world.faults.batch_cut):
                world.coverage["batch cut"] += 1
                dataflow.cut()

        dataflow = Dataflow(with_cuts(operators, cut), state, on_error, numbers, tables)
        return dataflow

    def _woken(self) -> None:
        """Something is there for the loop."""
        if self._awaits_welcome:
            self._world.after(0, partial(self._guarded, self._begin_if_welcome), self._lane)
        elif self._subtask is not None and not self.failed and not self.ended:
            self._step_in(self._world.between(*STEP_MS))

    def _next_step(self) -> None:
        """The loop would turn all the time; what turns in vain is left out."""
        assert self._subtask is not None
        arrives = self._arrives_in() if self._subtask._state.reading else None
        if self._subtask._state.reading and self._subtask._deps.dataflow.waits:
            arrives = 0 if self._world.calm else self._world.between(*ARRIVE_MS)
        end_to_say = arrives is None and not self._subtask._end_reported
        soon = self._world.between(*STEP_MS)
        self._step_in(soon if end_to_say else IDLE_MS if arrives is None else soon + arrives)

    def _arrives_in(self) -> int | None:
        """Milliseconds until a poll finds something; None if none ever will."""
        return min((due for each in self._readers.values() if (due := each.arrives_in) is not None), default=None)

    def _step_in(self, delay_ms: int) -> None:
        at = self._world.now_ms + delay_ms
        if self._step_at is None or at < self._step_at:
            self._step_at = at
            self._world.after(delay_ms, partial(self._step, at), self._lane)

    def _step(self, at: int) -> None:
        if at != self._step_at or self.failed or self.ended:
            return
        self._step_at = None
        subtask = self._subtask
        assert subtask is not None
        self._guarded(subtask.step)
        if not self.process.alive or self.failed or self.ended:
            return
        if subtask.ended:
            self.ended = True
            self._end()
        else:
            self._next_step()

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Fenced as error:
            self._world.note(self.process.name, "ends as fenced:", error)
            self.failed = True
            self._end()
        except TwoPhaseCommitError as error:
            bad = isinstance(error, ProtocolViolation | CheckpointCorrupted | ConfigurationError)
            broker, said = self._broker, str(error)
            blamed = self._snapshots.is_blamed(said) or broker.ended_input(said) or broker.ended_output(said)
            if bad and not self.abandoned and not blamed:
                self._world.violated(f"a subtask met {type(error).__name__}", f"{self.process.name}: {error}")
            self._fails(Failed(type(error).__name__, str(error), error.restartable))
        except Exception as error:  # noqa: BLE001  whatever it is, the run's verdict names it
            self._world.violated(f"a subtask failed with {type(error).__name__}", f"{self.process.name}: {error}")
            self._fails(Failed(type(error).__name__, str(error), restartable=True))

    def _fails(self, failed: Failed) -> None:
        self.failed = True
        self._link.send(failed)
        self._end()

    def _end(self) -> None:
        """As `Subtask.run` and the worker do it: abort what is open, close, say the last words."""
        self._awaits_welcome = False
        if self._subtask is not None:
            self._subtask._deps.outputs.abort()
            self._subtask._deps.dataflow.close()
        for group in self._groups:
            group.writer.close()
        self._world.after(1 if self._link.connected else LAST_WORDS_MS, self._exit, self._lane)

    def _exit(self) -> None:
        self._link.close()
        self.process.alive = False
        self._world.note(self.process.name, "exits")
        self._on_exit()
