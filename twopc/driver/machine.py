"""The driver's decisions from the first attempt of a run to its end: one function of an event and the time. Pure.

What comes in: answers to what was wanted, the coordinator's events, the end of a subtask, a wish to stop, the time.
What goes out: actions to carry out, each with a number that its answer brings back, and notices. The decisions
themselves are scripts (`twopc.driver.attempt`), of which one runs; beside it, a supervised attempt has actions of its
own. An answer that nobody waits for any more changes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from twopc import events
from twopc.config import RunSettings
from twopc.driver.attempt import Attempt, Failure
from twopc.driver.control import AnswerTimeout, EndOf, Now, Pause, StopWanted, Supervise, WithDeadline
from twopc.driver.effects import Action, Effect, Log, Notice, Script
from twopc.driver.final_cleanup import leave_nothing_open
from twopc.driver.host import StoppedEarly, Told
from twopc.driver.liveness import NOTHING_LOST, StoppedWithoutCheckpoint
from twopc.driver.progress import RunProgress
from twopc.driver.recovery import Planner
from twopc.driver.rescaling import ParallelismChanged
from twopc.driver.restart import PlannedRestart, RestartStrategy
from twopc.driver.running_job import RunningJob
from twopc.driver.supervision import Supervision
from twopc.errors import TwoPhaseCommitError, Unavailable
from twopc.protocol.checkpoints import LATEST


@dataclass(frozen=True, slots=True)
class Start:
    """The run begins."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to an action."""

    number: int
    value: Any


@dataclass(frozen=True, slots=True)
class ActionFailed:
    """The error that an action has raised."""

    number: int
    error: Exception


@dataclass(frozen=True, slots=True)
class SubtaskEnded:
    """A subtask is gone; `error` is what its host saw, `told` whether the coordinator can know more."""

    error: TwoPhaseCommitError | None
    told: Told


@dataclass(frozen=True, slots=True)
class StopRequested:
    """Somebody wants a last checkpoint, and the end."""


@dataclass(frozen=True, slots=True)
class AbortRequested:
    """Somebody wants the end at once."""

    error: KeyboardInterrupt


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed."""


Event = Start | Answer | ActionFailed | events.CoordinatorEvent | SubtaskEnded | StopRequested | AbortRequested | Tick


@dataclass(frozen=True, slots=True)
class ActionRequest:
    """An action to carry out; its answer brings the number back."""

    number: int
    action: Action[Any]


@dataclass(frozen=True, slots=True)
class Over:
    """The run has ended: well, or with an error to raise."""

    error: BaseException | None


Output = ActionRequest | Notice | Over


@dataclass(slots=True)
class _Wait:
    """The wait of the script: for the answer of this number, where it is for an action."""

    effect: Effect[Any]
    number: int
    until: float | None
    stoppable: bool


class Driver:
    """One run of a job. `settings` are those of its next attempt; `progress` is what was seen of it."""

    def __init__(self, job: RunningJob, settings: RunSettings, restore_from: str) -> None:
        self.settings = settings
        self.progress = RunProgress()
        self.stop_wanted = False
        self._job = job
        self._restore_from = restore_from
        self._planner = Planner(job.definition, bounded=settings.until_end)
        self._restarts = RestartStrategy.of(settings)
        self._script = self._run()
        self._waiting: _Wait | None = None
        self._beside: dict[int, tuple[Supervision, Action[Any]]] = {}
        self._numbers = 0
        self._now = 0.0
        self._out: list[Output] = []

    def step(self, event: Event, now: float) -> list[Output]:
        """Take in what has happened, at this monotonic time in seconds; return what is to be done, in order."""
        self._now, self._out = now, []
        match event:
            case Start():
                self._go_on(self._script.send, None)
            case Answer() | ActionFailed():
                self._take_answer(event)
            case events.JobEvent():
                self.progress.note(event, now)
            case SubtaskEnded(error, told) if self._supervision is not None:
                self._supervision.subtask_ended(error, told, now)
            case StopRequested():
                self.stop_wanted = True
            case AbortRequested(interrupt):
                self._go_on(self._script.throw, interrupt)
        while self._waiting is not None and self._moves(self._waiting):
            pass
        return self._out

    @property
    def deadline(self) -> float | None:
        """The time at which a tick has something to decide, as far as is known now."""
        if self._supervision is not None:
            return self._supervision.deadline
        return None if self._waiting is None else self._waiting.until

    @property
    def _supervision(self) -> Supervision | None:
        waiting = self._waiting
        return waiting.effect.supervision if waiting and isinstance(waiting.effect, Supervise) else None

    def _take_answer(self, answer: Answer | ActionFailed) -> None:
        failed = isinstance(answer, ActionFailed)
        value = answer.error if isinstance(answer, ActionFailed) else answer.value
        if self._waiting is not None and self._waiting.number == answer.number:
            self._go_on(self._script.throw if failed else self._script.send, value)
        elif answer.number in self._beside:
            supervision, action = self._beside.pop(answer.number)
            self._out.extend(supervision.answered(action, value, self._now))

    def _moves(self, waiting: _Wait) -> bool:
        """Let the script go on where what it waits for has come, or will not be waited for; return whether it did."""
        if waiting.stoppable and self.stop_wanted:
            self._go_on(self._script.throw, StoppedEarly())
            return True
        match waiting.effect:
            case Supervise(supervision):
                return self._supervises(supervision)
            case Pause() if self.stop_wanted or (waiting.until is not None and self._now >= waiting.until):
                self._go_on(self._script.send, None)
            case EndOf(kind) if not any(isinstance(action, kind) for _, action in self._beside.values()):
                self._go_on(self._script.send, None)
            case _ if waiting.until is not None and self._now >= waiting.until:
                self._go_on(self._script.throw, AnswerTimeout())
            case _:
                return False
        return True

    def _supervises(self, supervision: Supervision) -> bool:
        try:
            finished = supervision.look(self._now, stop_wanted=self.stop_wanted)
        except (TwoPhaseCommitError, StoppedEarly) as error:
            self._go_on(self._script.throw, error)
            return True
        if finished:
            self._go_on(self._script.send, None)
            return True
        for action in supervision.due(self._now, stop_wanted=self.stop_wanted):
            self._beside[self._want(action)] = supervision, action
        return False

    def _go_on(self, give: Callable[[Any], Any], given: Any) -> None:
        """Let the script run until it waits for something again, or ends."""
        self._waiting = None
        try:
            wanted = give(given)
            while not self._waits_for(wanted):
                wanted = self._script.send(self._known(wanted))
        except StopIteration:
            self._out.append(Over(None))
        except BaseException as error:  # noqa: BLE001 - whoever runs the shell gets it
            self._out.append(Over(error))

    def _waits_for(self, wanted: Any) -> bool:
        """Begin what is wanted; return False where there is nothing to wait for."""
        if isinstance(wanted, Notice):
            self._out.append(wanted)
            return False
        limited = wanted if isinstance(wanted, WithDeadline) else WithDeadline(wanted)
        effect, until = limited.effect, limited.until
        if isinstance(effect, Now | StopWanted):
            return False
        if isinstance(effect, Pause):
            until = self._now + effect.seconds
        number = 0
        if isinstance(effect, Action) and not (limited.stoppable and self.stop_wanted):
            number = self._want(effect)
        self._waiting = _Wait(effect, number, until, limited.stoppable)
        return True

    def _known(self, wanted: Any) -> Any:
        """Return what a script is told at once."""
        effect = wanted.effect if isinstance(wanted, WithDeadline) else wanted
        match effect:
            case Now():
                return self._now
            case StopWanted():
                return self.stop_wanted
            case _:
                return None

    def _want(self, action: Action[Any]) -> int:
        self._numbers += 1
        self._out.append(ActionRequest(self._numbers, action))
        return self._numbers

    def _run(self) -> Script[None]:
        """Run one attempt after the other until one finishes the job; raise what ends it otherwise."""
        failed: Failure | None = None
        restore_from, ever_submitted = self._restore_from, False
        while True:
            settings = self.settings
            attempt = Attempt(self._job, settings, self._planner, self.progress, restore_from, failed)
            try:
                failure = yield from attempt.script()
            except StoppedEarly:
                yield from _stopped_early(failed)
                return
            if failure is None:
                return
            failed, ever_submitted = failure, ever_submitted or failure.submitted
            if isinstance(failure.error, PlannedRestart):
                if isinstance(failure.error, ParallelismChanged):
                    self.settings = replace(settings, parallelism=failure.error.parallelism)
                restore_from = LATEST
                continue
            # Somebody is waiting at a prompt for this very message: a wrong address never gets right by itself.
            delay = self._delay(failure) if ever_submitted else None
            if delay is None:
                yield from leave_nothing_open(self._job.name, settings, failure)
                # What the host saw of it stays its cause: a traceback of the user's own, if there is one.
                raise self._as_stopped(failure.error) from failure.error.__cause__
            if self.progress.completed_checkpoints:
                restore_from = LATEST
            again = f"trying again in {delay:.1f} s (restart {self._restarts.used})"
            yield Log(logging.WARNING, f"attempt failed: {failure.error}; {again}")
            yield Pause(delay)

    def _as_stopped(self, error: TwoPhaseCommitError) -> TwoPhaseCommitError:
        """Return what ends the run: who has asked it to stop is told that nothing is lost, where it is so."""
        if self.stop_wanted and error.restartable and not isinstance(error, StoppedWithoutCheckpoint):
            return StoppedWithoutCheckpoint(f"stopped without a last checkpoint: {error}")
        return error

    def _delay(self, failure: Failure) -> float | None:
        """Return how long to wait before the next attempt, None if there is to be none."""
        if not failure.error.restartable or self.stop_wanted:
            return None
        return self._restarts.after_failure(
            ran_seconds=failure.ran_seconds, completed_checkpoint=failure.completed_checkpoint
        )


def _stopped_early(failed: Failure | None) -> Script[None]:
    """A stop before anything was read is one as was asked for; one that keeps the job from going on is not."""
    if failed is None:
        yield Log(logging.WARNING, "stopped before a record was read")
        return
    raise Unavailable(
        f"stopped without a last checkpoint, while the job was starting again. {NOTHING_LOST}. What had ended it: "
        f"{failed.error}"
    ) from failed.error
