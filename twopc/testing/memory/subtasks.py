"""The subtasks of one attempt in the thread of a test: production's, which move when they are told to."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Executor, Future
from contextlib import ExitStack
from copy import copy
from functools import partial
from pathlib import Path
from typing import Any

from twopc.clock import Clock
from twopc.driver.host import Told
from twopc.errors import TwoPhaseCommitError, Unavailable
from twopc.graph import JobDefinition
from twopc.protocol.facts import SplitPosition
from twopc.protocol.followed_times import FollowedTime, NumberTimes, job_times
from twopc.runtime.assembly import Surroundings, assemble, failure_of, subtask_of
from twopc.runtime.dependencies import SubtaskDependencies
from twopc.runtime.spec import SubtaskSpec
from twopc.runtime.subtask import Subtask
from twopc.state.memory import MemoryBackend
from twopc.state.snapshot_store import SnapshotStore
from twopc.storage.memory import MemoryStore
from twopc.testing.memory.coordinator import DirectCoordinator
from twopc.testing.memory.source import MemorySource


class AtOnce(Executor):
    """Runs a task when it is given one, on the caller's thread."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


class MemorySubtask:
    """One subtask. `error` is what made it fail; it is `quiet` while it has nothing to do, as far as it knows."""

    def __init__(self, definition: JobDefinition, spec: SubtaskSpec, host: MemoryHost) -> None:
        self.error: Exception | None = None
        self.closing = ExitStack()
        self._link = host.coordinator.attach(spec.job, spec.attempt, spec.subtask)
        # A source of the user's own may have nothing now and something after a wait, which each has in its turn.
        own = [source for source in definition.sources.values() if not isinstance(source, MemorySource)]
        self._looks = len(definition.sources) + 1 if own else 1
        self._looked = 0
        self._marked = definition.marked_sinks
        self._parts: SubtaskDependencies | None = None
        self._subtask: Subtask | None = None
        self._try(lambda: self._begin(definition, spec, host))

    @property
    def ended(self) -> bool:
        return self.error is not None or (self._subtask is not None and self._subtask.ended)

    @property
    def at_end(self) -> bool:
        """Whether nothing will ever be read any more: its sources are finite."""
        return self._parts is not None and self._parts.inputs.at_end() and not self._parts.dataflow.waits

    @property
    def quiet(self) -> bool:
        return self._looked >= self._looks or self.at_end

    @property
    def unread(self) -> bool:
        """Whether there is more to read, as far as its readers know."""
        return self._parts is not None and bool(self._parts.inputs.lag())

    @property
    def positions(self) -> tuple[SplitPosition, ...]:
        """Its positions."""
        return () if self._parts is None else self._parts.inputs.positions(lambda source: ())

    @property
    def times_told(self) -> tuple[NumberTimes, ...]:
        """The times of its topics of the job's own, as it told them with its latest checkpoint."""
        return tuple(times for times in self._link.times_told if times.operator in self._marked)

    @property
    def times_brought(self) -> tuple[FollowedTime, ...]:
        """The times that the trigger of that brought."""
        return self._link.times_brought

    def wake(self) -> None:
        """There may be something to read again."""
        self._looked = 0

    def step(self) -> None:
        """Take one turn."""
        if not self.ended:
            self._try(self._step)

    @property
    def stream_time(self) -> int | None:
        """The greatest of its operators and partition numbers."""
        return None if self._parts is None else self._parts.dataflow.timed.stream_time

    def pass_time(self, sources: Collection[str], to: int) -> None:
        """Let time pass behind these sources, and write what comes of it."""
        if self._parts is not None:
            self._try(partial(_pass_time, self._parts, sources, to))

    def deliver(self) -> None:
        """Hand what it has said to the coordinator."""
        self._link.deliver()

    def end(self) -> None:
        """End as a subtask that is told to, or fails: the open transaction is aborted."""
        with self.closing:
            if self._parts is not None:
                self._parts.outputs.abort()
        self._parts = None

    def _begin(self, definition: JobDefinition, spec: SubtaskSpec, host: MemoryHost) -> None:
        # Each subtask has sources and sinks of its own; the driver goes on using those of the definition.
        own = definition.replaced({key: copy(end) for key, end in definition.ends.items()})
        folder = host.folder / f"{spec.attempt}-{spec.subtask}"
        storage = SnapshotStore(host.store.within(spec.job))
        around = Surroundings(self._link, host.clock, storage, MemoryBackend, folder, lambda name: AtOnce())
        self._parts = assemble(own, spec, around, self.closing)
        self._subtask = subtask_of(spec, self._parts)
        # Not as a host of production's: whoever watches for slow functions is a thread, which cuts batches.
        self._subtask.begin()

    def _step(self) -> None:
        assert self._subtask is not None
        assert self._parts is not None
        before = self.positions
        self._subtask.step()
        moves = self._parts.dataflow.waits or self.positions != before
        self._looked = 0 if moves else self._looked + 1

    def _try(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - the driver raises it
            self.error = error
            self.end()
            self._link.send(failure_of(error))


def _pass_time(parts: SubtaskDependencies, sources: Collection[str], to: int) -> None:
    parts.outputs.write(parts.dataflow.pass_time(sources, to), parts.dataflow.refuse)


class MemorySubtasks:
    """The subtasks of one attempt, as the driver sees them."""

    def __init__(self, subtasks: Sequence[MemorySubtask]) -> None:
        self.subtasks = list(subtasks)

    @property
    def quiet(self) -> bool:
        """Whether nobody has anything to do now. Where nobody ever will, the job is about to finish."""
        return all(subtask.quiet for subtask in self.subtasks) and not all(subtask.at_end for subtask in self.subtasks)

    @property
    def positions(self) -> tuple[SplitPosition, ...]:
        """The positions of all splits."""
        return tuple(held for subtask in self.subtasks for held in subtask.positions)

    @property
    def unread(self) -> bool:
        """Whether topics hold more to read, as far as their readers know."""
        return any(subtask.unread for subtask in self.subtasks)

    @property
    def times_settled(self) -> bool:
        """Whether no later checkpoint will bring other times to the job's own topics, if nothing more is read."""
        told = [subtask.times_told for subtask in self.subtasks]
        to_come = job_times(told, job_times(told, {}).greatest).followed
        return all(set(to_come) <= set(subtask.times_brought) for subtask in self.subtasks)

    @property
    def stream_time(self) -> int | None:
        """The greatest of any operator and partition number."""
        known = (subtask.stream_time for subtask in self.subtasks)
        return max((time for time in known if time is not None), default=None)

    def step(self) -> None:
        """Let each subtask take one turn, in order."""
        for subtask in self.subtasks:
            subtask.step()

    def deliver(self) -> None:
        """Hand what they have said to the coordinator."""
        for subtask in self.subtasks:
            subtask.deliver()

    def wake(self) -> None:
        """There may be something to read again."""
        for subtask in self.subtasks:
            subtask.wake()

    def wait(self, timeout: float) -> bool:
        return any(subtask.ended for subtask in self.subtasks)

    def drain(self, timeout: float) -> None:
        self.step()

    def error(self) -> TwoPhaseCommitError | None:
        error = next((subtask.error for subtask in self.subtasks if subtask.error is not None), None)
        if error is None or isinstance(error, TwoPhaseCommitError):
            return error
        return Unavailable(f"{type(error).__name__}: {error}")

    def told_why(self) -> Told:
        return Told.YES if any(subtask.error is not None for subtask in self.subtasks) else Told.PERHAPS

    def shortage(self) -> str | None:
        return None

    def kill(self) -> None:
        for subtask in self.subtasks:
            subtask.end()


class MemoryHost:
    """Starts stages; `folder` is for what is on its way into the checkpoint store."""

    def __init__(self, coordinator: DirectCoordinator, store: MemoryStore, clock: Clock, folder: Path) -> None:
        self.coordinator = coordinator
        self.store = store
        self.clock = clock
        self.folder = folder

    def notice(self) -> str | None:
        return None

    def refusal(self, parallelism: int) -> str | None:
        return None

    def submit(self, definition: JobDefinition, specs: Sequence[SubtaskSpec]) -> MemorySubtasks:
        return MemorySubtasks([MemorySubtask(definition, spec, self) for spec in specs])

    def close(self) -> None:
        """The driver kills every stage."""
