"""One subtask in the thread that runs the job: for breakpoints, profilers and notebooks.

The driver's loop asks the subtasks again and again whether they have ended; this one takes its turns meanwhile.
So user functions run where the user called, and Ctrl-C and a debugger find them there. What stands still at a
breakpoint is supervised by nobody but the clock of the checkpoints.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from copy import copy

from twopc.driver.host import Told
from twopc.errors import ConfigurationError, TwoPhaseCommitError, Unavailable
from twopc.graph import JobDefinition
from twopc.runtime.spec import SubtaskSpec
from twopc.worker.bootstrap import running_subtask


class InlineSubtasks:
    """One subtask, which moves while somebody waits for it."""

    def __init__(self, definition: JobDefinition, spec: SubtaskSpec) -> None:
        # Each subtask has sources and sinks of its own; the driver goes on using those of the definition.
        own = definition.replaced({key: copy(end) for key, end in definition.ends.items()})
        self._turns = _turns(own, spec)
        self._ended = False
        self._error: Exception | None = None

    def wait(self, timeout: float) -> bool:
        deadline = time.monotonic() + timeout
        while not self._ended:
            try:
                next(self._turns)
            except StopIteration:
                self._ended = True
            except Exception as error:  # noqa: BLE001 - the driver raises it
                self._error, self._ended = error, True
            if time.monotonic() >= deadline:
                break
        return self._ended

    def drain(self, timeout: float) -> None:
        self.wait(timeout)

    def error(self) -> TwoPhaseCommitError | None:
        if self._error is None or isinstance(self._error, TwoPhaseCommitError):
            return self._error
        return Unavailable(f"{type(self._error).__name__}: {self._error}")

    def told_why(self) -> Told:
        return Told.PERHAPS if self._error is None else Told.YES

    def shortage(self) -> str | None:
        return None

    def kill(self) -> None:
        self._ended = True
        self._turns.close()


def _turns(definition: JobDefinition, spec: SubtaskSpec) -> Generator[None]:
    """Run a subtask, and stop after each of its turns; closed, it ends as one that is killed does."""
    with running_subtask(lambda: definition, spec) as subtask:
        while not subtask.ended:
            subtask.step()
            yield


class InlineHost:
    """Runs the one subtask of a job in the calling thread."""

    def __init__(self, parallelism: int) -> None:
        if (refused := self.refusal(parallelism)) is not None:
            raise ConfigurationError(refused)
        self._running: InlineSubtasks | None = None

    def notice(self) -> str | None:
        return None

    def refusal(self, parallelism: int) -> str | None:
        if parallelism == 1:
            return None
        return (
            f"host 'inline' runs one subtask in the calling thread, so parallelism can't be {parallelism}: leave it "
            "out, or run several with host 'process' or 'spark'"
        )

    def submit(self, definition: JobDefinition, specs: Sequence[SubtaskSpec]) -> InlineSubtasks:
        [spec] = specs
        self._running = InlineSubtasks(definition, spec)
        return self._running

    def close(self) -> None:
        if self._running is not None:
            self._running.kill()
