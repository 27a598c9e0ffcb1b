"""What drivers and people ask of the coordinator about a job: one table of requests. Pure.

A request is a dataclass here, with the kind of its answer; `coordinator.jobs.Jobs.answer` answers it. One that changes
something is answered when that is durable. On the wire all of a driver's go through one call, as JSON by their types;
what is for people passes `redacted` on both sides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Generic, TypeVar, cast

from twopc.protocol.attempts import NO_TRACES, CheckpointSettings, GlobalCommit, StartedAttempt, Traces
from twopc.protocol.checkpoints import CheckpointKind, checked_label
from twopc.protocol.ids import NO_ATTEMPT, AttemptId, CheckpointId, SubtaskIndex
from twopc.protocol.planned_starts import StartsPlanned

A = TypeVar("A")
R = TypeVar("R", bound="Request[Any]")

_FOR_PEOPLE = "for people"


def for_people(default: Any = "") -> Any:
    """Declare a field of text, or of a tuple of texts, that people read and nothing is decided by."""
    return field(default=default, metadata={_FOR_PEOPLE: True})


class Request(Generic[A]):
    """A request whose answer is an A; `ANSWER` is its class, None for one that is only done."""

    __slots__ = ()

    ANSWER: ClassVar[Any] = None


@dataclass(frozen=True, slots=True)
class StartAttempt(Request[StartedAttempt]):
    """A driver wants to run the job. `restore_from` is "latest", "none", or a checkpoint id in decimal.

    `traces` are of attempts that the new one must be greater than, whatever the ledger says.
    `restart`: the driver goes on after a failure, so a stop that was asked for is still wanted. `restart_of` is the
    attempt that failed, as far as the driver knows: if there has been a later one since, another driver runs the job.
    `host` and `pid` are the driver's, for people.
    """

    parallelism: int
    settings: CheckpointSettings
    restore_from: str
    traces: Traces = NO_TRACES
    restart: bool = False
    restart_of: AttemptId = NO_ATTEMPT
    host: str = for_people()
    pid: int = 0

    ANSWER: ClassVar[Any] = StartedAttempt


@dataclass(frozen=True, slots=True)
class ConfirmCommittables(Request[None]):
    """The driver has settled these committables of this checkpoint."""

    attempt: AttemptId
    checkpoint_id: CheckpointId
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NextGlobalCommit(Request[GlobalCommit | None]):
    """The driver of this attempt asks what global committers have to commit next: of the oldest checkpoint first."""

    attempt: AttemptId

    ANSWER: ClassVar[Any] = GlobalCommit


@dataclass(frozen=True, slots=True)
class SettleLoss(Request[None]):
    """The driver has decided what becomes of committables of the newest completed checkpoint that are lost."""

    attempt: AttemptId
    checkpoint_id: CheckpointId
    names: tuple[str, ...]
    bases: tuple[tuple[SubtaskIndex, CheckpointId], ...]
    message: str = for_people()


@dataclass(frozen=True, slots=True)
class PlanStarts(Request[None]):
    """The driver has planned where an attempt without anything to restore begins to read."""

    planned: StartsPlanned


@dataclass(frozen=True, slots=True)
class StopJob(Request[None]):
    """A final checkpoint of this attempt is wanted; see `StopRequested`."""

    attempt: AttemptId
    savepoint: bool = False
    label: str = ""
    drain: bool = False

    def __post_init__(self) -> None:
        if self.label:
            checked_label(self.label)


@dataclass(frozen=True, slots=True)
class DisposeCheckpoint(Request[None]):
    """Somebody lets go of a kept checkpoint."""

    checkpoint_id: CheckpointId


@dataclass(frozen=True, slots=True)
class TriggerCheckpoint(Request[None]):
    """Somebody wants a manual checkpoint, or a savepoint, of whichever attempt runs.

    `request_id` is the asker's own: every event of what comes of it carries it. The same id again is the same request.
    """

    kind: CheckpointKind
    label: str
    request_id: str


@dataclass(frozen=True, slots=True)
class Rescale(Request[None]):
    """Somebody wants so many subtasks, of whichever attempt runs; `request_id` is the asker's own."""

    parallelism: int
    request_id: str


@dataclass(frozen=True, slots=True)
class RefuseRescale(Request[None]):
    """The driver of this attempt can't run as many subtasks as this request wants."""

    attempt: AttemptId
    request_id: str
    message: str = for_people()


@dataclass(frozen=True, slots=True)
class NoteInput(Request[None]):
    """The driver of this attempt says what of its input is hidden, or not read, in place of what it said before."""

    attempt: AttemptId
    notes: tuple[str, ...] = for_people(())


@dataclass(frozen=True, slots=True)
class EndAttempt(Request[None]):
    """The driver ends the attempt."""

    attempt: AttemptId
    reason: str = for_people()


Command = (
    StartAttempt
    | ConfirmCommittables
    | SettleLoss
    | PlanStarts
    | StopJob
    | TriggerCheckpoint
    | Rescale
    | RefuseRescale
    | NoteInput
    | EndAttempt
    | DisposeCheckpoint
)
"""What may change a job."""

DriverRequest = (
    StartAttempt
    | ConfirmCommittables
    | NextGlobalCommit
    | SettleLoss
    | PlanStarts
    | StopJob
    | RefuseRescale
    | NoteInput
    | EndAttempt
)
"""What a driver may ask; people have a service of their own."""


def redacted(request: R, redact: Callable[[str], str]) -> R:
    """Return the request with what it has for people as `redact` leaves it."""
    it: Any = request
    texts = {each.name: getattr(it, each.name) for each in fields(it) if _FOR_PEOPLE in each.metadata}
    return cast(R, replace(it, **{name: _redacted(value, redact) for name, value in texts.items()}))


def _redacted(value: str | tuple[str, ...], redact: Callable[[str], str]) -> str | tuple[str, ...]:
    return redact(value) if isinstance(value, str) else tuple(map(redact, value))
