"""A subtask process: the production `Subtask` with its store and commit threads as lanes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

from twopc.errors import (
    CheckpointCorrupted,
    ConfigurationError,
    Fenced,
    ProtocolViolation,
    TwoPhaseCommitError,
    Unavailable,
)
from twopc.operators.chain import Chain
from twopc.protocol.messages import Failed
from twopc.runtime.spec import SubtaskSpec
from twopc.runtime.state import SubtaskStore
from twopc.runtime.subtask import Parts, Subtask
from twopc.state.keyed import KeyedState
from twopc.state.restore import restore_state
from twopc.testing.simulation.broker import SimBroker
from twopc.testing.simulation.disk import LocalDisk, SimSnapshots
from twopc.testing.simulation.network import Peer, SimLink
from twopc.testing.simulation.sink import SimSink
from twopc.testing.simulation.source import GROUP, STEP, SimSource
from twopc.testing.simulation.world import Lane, Process, World

STEP_MS = (5, 60)
IDLE_MS = 100
SILENCE_SECONDS = 60.0
WELCOME_MS = 20
LAST_WORDS_MS = 2_000


class SimExecutor(Executor):
    """Runs one task at a time, in order, when its lane's turn comes."""

    def __init__(self, world: World, lane: Lane) -> None:
        self._world = world
        self._lane = lane
        self._tasks: deque[Callable[[], Any]] = deque()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self._tasks.append(lambda: fn(*args, **kwargs))
        self._world.after(self._world.delay(20), self._run_one, self._lane)
        return Future()

    def _run_one(self) -> None:
        if self._tasks:
            self._tasks.popleft()()


class SimSubtask:
    """One process. `failed` and `ended` say how it ended; what one meets that is `abandoned` concerns nobody."""

    def __init__(
        self,
        world: World,
        spec: SubtaskSpec,
        pid: int,
        broker: SimBroker,
        snapshots: SimSnapshots,
        source: SimSource,
        dial: Callable[[], Peer | None],
    ) -> None:
        self.process = Process(f"subtask-{spec.subtask}.{spec.attempt}", "subtask")
        self.failed = False
        self.ended = False
        self.abandoned = False
        self._world = world
        self._spec = spec
        self._broker = broker
        self._snapshots = snapshots
        self._source = source
        self._lane = Lane(self.process, "loop")
        self._link = SimLink(world, Lane(self.process, "link"), spec.job, spec.attempt, spec.subtask, pid, dial)
        self._subtask: Subtask | None = None
        self._started_ms = world.now_ms
        self._sink = SimSink(broker)
        world.note(self.process.name, "starts")
        world.after(world.delay(200), self._start, self._lane)

    def died(self) -> None:
        self._link.lost()

    def _start(self) -> None:
        """Wait for the coordinator's welcome, as the assembly does."""
        self._guarded(self._begin_if_welcome)

    def _begin_if_welcome(self) -> None:
        if self._link.welcomed():
            self._begin()
        elif self._world.now_ms - self._started_ms > SILENCE_SECONDS * 1000:
            raise Unavailable("simulated: the coordinator never accepted this subtask")
        else:
            self._world.after(WELCOME_MS, self._start, self._lane)

    def _begin(self) -> None:
        if self._world.happens(self._world.faults.pause_at_start):
            self._world.coverage["pause before opening the sink"] += 1
            self._world.pause(self.process, "before it opens its sink")
            self._world.after(0, self._begin, self._lane)
            return
        self._guarded(self._assemble)

    def _assemble(self) -> None:
        spec, world = self._spec, self._world
        local = LocalDisk()
        backend = restore_state(
            self._snapshots,
            spec.snapshots,
            [split.partition for split in spec.splits],
            spec.subtask,
            local.folder("work"),
        )
        self._sink.open(spec.context)
        parts = Parts(
            reader=self._source.open(spec.context, spec.splits),
            process=Chain((STEP,), KeyedState(backend)).process,
            sink=self._sink,
            store=SubtaskStore(spec.subtask, backend, self._snapshots, local.folder("snapshots")),
            link=self._link,
            clock=world,
            store_executor=SimExecutor(world, Lane(self.process, "store")),
            commit_executor=SimExecutor(world, Lane(self.process, "commit")),
        )
        self._subtask = Subtask(spec.subtask, parts, group=GROUP, silence_limit_seconds=SILENCE_SECONDS)
        self._subtask.begin()
        self._next_step()

    def _next_step(self) -> None:
        low, high = STEP_MS
        self._world.after(self._world.rng.randint(low, high), self._step, self._lane)

    def _step(self) -> None:
        subtask = self._subtask
        assert subtask is not None
        self._guarded(subtask.step)
        if not self.process.alive or self.failed or self.ended:
            return
        if subtask._ended:
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
            if bad and not self.abandoned:
                self._world.violated(f"{self.process.name} met {type(error).__name__}: {error}")
            self._fails(Failed(type(error).__name__, str(error), error.restartable))
        except Exception as error:  # noqa: BLE001  whatever it is, the run's verdict names it
            self._world.violated(f"{self.process.name} failed with {type(error).__name__}: {error}")
            self._fails(Failed(type(error).__name__, str(error), restartable=True))

    def _fails(self, failed: Failed) -> None:
        self.failed = True
        self._link.send(failed)
        self._end()

    def _end(self) -> None:
        """As `Subtask.run` and the worker do it: abort what is open, close, say the last words."""
        if self._subtask is not None:
            self._subtask._abort_open()
        self._sink.close()
        self._world.after(1 if self._link.connected else LAST_WORDS_MS, self._exit, self._lane)

    def _exit(self) -> None:
        self._link.close()
        self.process.alive = False
        self._world.note(self.process.name, "exits")
