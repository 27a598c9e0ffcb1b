"""The subtasks of one attempt while they run: whether it goes on, and what is looked for meanwhile. Pure.

What a subtask managed to say outweighs what its host saw of its end. When the job's end has come, so has all that was
told before: the report is of the whole run.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from twopc import events
from twopc.context import JobContext
from twopc.driver.actions import AbortLingering, CommitGlobally, FindShortage, RequestStop
from twopc.driver.effects import UNTIMED, Action, Log, Notice, Tell
from twopc.driver.host import StoppedEarly, Told
from twopc.driver.input_watch import InputWatch, LookAtInput, NoteInput
from twopc.driver.liveness import StoppedWithoutCheckpoint, hopeless
from twopc.driver.progress import AttemptProgress, error_of
from twopc.driver.rescaling import FindRoom, RefuseRescale, Rescaling
from twopc.driver.trimming import Trim, TrimSchedule
from twopc.errors import Fenced, GlobalCommitFailed, TwoPhaseCommitError, Unavailable

PATIENCE_SECONDS = {Told.YES: 10.0, Told.PERHAPS: 0.5, Told.NO: 0.1}
"""How long the reason of an end, or the job's end, may be on its way through the coordinator.

A subtask that was killed has no reason on its way, but the job may have ended before it was.
"""

SHORTAGE_LOOK_SECONDS = 1.0
SHORTAGE_PATIENCE_SECONDS = 5.0
SHORTAGE_AGAIN_SECONDS = 30.0

SWEEP_PAUSE_SECONDS = 30.0
SWEEP_RETRY_SECONDS = 0.2

GLOBAL_COMMIT_RETRY_SECONDS = 1.0


@dataclass(slots=True)
class Shortage:
    """The shortage that subtasks wait for: said when that takes long or changes, and every half minute."""

    look_at: float = 0.0
    _since: float | None = None
    _logged: str = ""
    _logged_at: float = 0.0

    def worth_saying(self, shortage: str | None, now: float) -> bool:
        """Take in what the subtasks lack now; return whether to say it."""
        if shortage is None:
            self._since = None
            return False
        self._since = now if self._since is None else self._since
        patient = now - self._since < SHORTAGE_PATIENCE_SECONDS
        if patient or (shortage == self._logged and now - self._logged_at < SHORTAGE_AGAIN_SECONDS):
            return False
        self._logged, self._logged_at = shortage, now
        return True


@dataclass(slots=True)
class Sweeps:
    """The looking for transactions that zombies open late: once a checkpoint has completed, and every half minute."""

    due_at: float = 0.0
    under_way: bool = False
    fenced: Fenced | None = None

    def answered(self, answer: list[str] | Exception, now: float) -> Iterator[Log]:
        """Take in what a sweep found; whatever goes wrong in one must not end a job that is well."""
        self.under_way = False
        self.due_at = now + SWEEP_PAUSE_SECONDS
        match answer:
            case Fenced():
                self.fenced = answer
            case TwoPhaseCommitError():
                self.due_at = now + SWEEP_RETRY_SECONDS
                yield Log(logging.DEBUG, f"lingering transactions were not looked for again yet: {answer}")
            case Exception():
                yield Log(logging.ERROR, "lingering transactions could not be looked for again", answer)
            case _:
                for name in answer:
                    yield Log(logging.WARNING, f"lingering transaction {name} of a zombie: aborted")


@dataclass(slots=True)
class GlobalCommits:
    """The commits of global committers: begun when a checkpoint has completed, never two at once.

    Each turn commits all that is outstanding, so it does not matter which completions were heard of, and when.
    """

    due_at: float = 0.0
    under_way: bool = False
    error: TwoPhaseCommitError | None = None
    _begun_for: int = 0
    _done_for: int = 0

    def outstanding(self, completed: int) -> bool:
        """Whether a turn is to be begun: so many checkpoints of the attempt have completed."""
        return completed > self._done_for and not self.under_way and self.error is None

    def begin(self, completed: int) -> None:
        self.under_way, self._begun_for = True, completed

    def answered(self, answer: Exception | None, now: float) -> Iterator[Log]:
        """Take in how a turn ended; only a coordinator that does not answer leaves the attempt as it is."""
        self.under_way = False
        match answer:
            case None:
                self._done_for = self._begun_for
            case Unavailable():
                self.due_at = now + GLOBAL_COMMIT_RETRY_SECONDS
                yield Log(
                    logging.INFO, f"nothing is committed globally while the coordinator does not answer: {answer}"
                )
            case TwoPhaseCommitError():
                self.error = answer
            case _:
                self.error = GlobalCommitFailed(f"a global commit ended with {type(answer).__name__}: {answer}")


@dataclass(slots=True)
class _End:
    """The end of the first subtask that ended, as the host saw it."""

    error: TwoPhaseCommitError | None
    until: float


@dataclass(slots=True)
class _Stop:
    asked_at: float
    accepted: bool = False


_FAILURES: dict[type[Action[Any]], tuple[int, str]] = {
    RefuseRescale: (logging.WARNING, "who asked for another parallelism could not be told"),
    NoteInput: (logging.DEBUG, "the coordinator could not be told of the input"),
    RequestStop: (logging.WARNING, "the coordinator could not be asked for a last checkpoint"),
}
"""What is said where one of these fails: the attempt goes on."""


@dataclass(slots=True)
class Supervision:
    """One attempt whose subtasks run. Each `look` raises what ends it otherwise than well.

    `commits_globally`: it has a sink with a global committer. `input_watch` looks at what it does not read. `trims`: it
    reads what it writes itself, and deletes that behind it.
    """

    context: JobContext
    progress: AttemptProgress
    commits_globally: bool = False
    input_watch: InputWatch | None = None
    trims: TrimSchedule | None = None
    rescaling: Rescaling = field(init=False)
    sweeps: Sweeps = field(default_factory=Sweeps)
    global_commits: GlobalCommits = field(default_factory=GlobalCommits)
    _shortage: Shortage = field(default_factory=Shortage)
    _end: _End | None = None
    _stop: _Stop | None = None

    def __post_init__(self) -> None:
        self.rescaling = Rescaling(self.context)

    def subtask_ended(self, error: TwoPhaseCommitError | None, told: Told, now: float) -> None:
        """Take in that one is gone: how the job ended may be on its way. No error means that it was told to end."""
        if self._end is None:
            self._end = _End(error, now + PATIENCE_SECONDS[Told.YES if error is None else told])

    def look(self, now: float, *, stop_wanted: bool) -> bool:
        """Return whether the job has finished; raise the error that ends the attempt, StoppedEarly where none ran."""
        progress, end = self.progress, self._end
        if progress.finished:
            return True
        if progress.failure is not None:
            raise error_of(progress.failure) from (None if end is None else end.error)
        if self.sweeps.fenced is not None:
            raise self.sweeps.fenced
        if self.global_commits.error is not None:
            raise self.global_commits.error
        if end is not None:
            if now >= end.until:
                raise end.error or Unavailable(
                    "a subtask has ended, and the coordinator has not said that the job has finished: is it running?"
                )
        elif stop_wanted:
            self._check_stop(now)
        else:
            self.rescaling.look(progress.rescale, progress.known)
            if self.input_watch is not None:
                self.input_watch.look(progress.completed)
        return False

    def _check_stop(self, now: float) -> None:
        """Raise StoppedEarly where nothing was read, StoppedWithoutCheckpoint where none is to be hoped for."""
        if not self.progress.liveness.attached:
            raise StoppedEarly
        if self._stop is not None:
            asked_at, accepted = self._stop.asked_at, self._stop.accepted
            why = hopeless(self.progress.liveness, self.context.parallelism, asked_at, now, accepted=accepted)
            if why is not None:
                raise StoppedWithoutCheckpoint(why)

    def due(self, now: float, *, stop_wanted: bool) -> Iterator[Action[Any]]:
        """Yield what is to be done beside the subtasks now."""
        if self._end is None and stop_wanted and self._stop is None:
            self._stop = _Stop(now)
            yield RequestStop(self.context)
        if self._end is None and not self.progress.liveness.attached and now >= self._shortage.look_at:
            self._shortage.look_at = now + SHORTAGE_LOOK_SECONDS
            yield FindShortage()
        if self.progress.completed and not self.sweeps.under_way and now >= self.sweeps.due_at:
            self.sweeps.under_way = True
            yield AbortLingering()
        if self._commits_due and now >= self.global_commits.due_at:
            self.global_commits.begin(self.progress.completed)
            yield CommitGlobally(self.context)
        if self._end is None and not stop_wanted:
            yield from self.rescaling.due(self.progress.rescale)
            if self.input_watch is not None:
                yield from self.input_watch.due(now)
        if self.trims is not None:
            yield from self.trims.due(self.context, self.progress.completed, now)

    @property
    def _commits_due(self) -> bool:
        return self.commits_globally and self.global_commits.outstanding(self.progress.completed)

    @property
    def deadline(self) -> float | None:
        """The time at which to look again though nothing has happened."""
        if self._end is not None:
            return self._end.until
        sweep_at = [self.sweeps.due_at] if self.progress.completed and not self.sweeps.under_way else []
        commit_at = [self.global_commits.due_at] if self._commits_due else []
        look_at = None if self.input_watch is None else self.input_watch.deadline
        trim_at = None if self.trims is None else self.trims.deadline(self.progress.completed)
        others = [each for each in (look_at, trim_at) if each is not None]
        return min([*sweep_at, *commit_at, *others], default=None)

    def answered(self, effect: Action[Any], answer: Any, now: float) -> Iterator[Notice]:
        """Take in the answer to one of these, or its error."""
        match effect:
            case AbortLingering():
                yield from self.sweeps.answered(answer, now)
            case CommitGlobally():
                yield from self.global_commits.answered(answer, now)
            case LookAtInput() if self.input_watch is not None:
                yield from self.input_watch.answered(answer, self.progress.completed, now)
            case Trim() if self.trims is not None:
                yield from self.trims.answered(answer, now)
            case FindRoom():
                yield from self.rescaling.answered(effect, answer)
            case RefuseRescale() | NoteInput() | RequestStop() if isinstance(answer, Exception):
                level, text = _FAILURES[type(effect)]
                yield Log(level, f"{text}: {answer}")
            case RequestStop() if self._stop is not None:
                self._stop.accepted = True
            case FindShortage() if not isinstance(answer, Exception) and self._shortage.worth_saying(answer, now):
                context = self.context
                yield Tell(events.WaitingForHost(context.job, context.attempt, UNTIMED, message=answer))
