"""Everything that coordinator and subtask say to each other, as frozen values; `proto/` holds the wire form.

A message of a subtask counts only for the job and the attempt that it attached with.
"""

from __future__ import annotations

from dataclasses import dataclass

from twopc.protocol.facts import SubtaskSnapshot
from twopc.protocol.figures import Figures
from twopc.protocol.followed_times import FollowedTime, NumberTimes
from twopc.protocol.ids import CheckpointId
from twopc.protocol.record_errors import RecordErrorKind


@dataclass(frozen=True, slots=True)
class Welcome:
    """The subtask is accepted: it belongs to the attempt that owns the job. Its sink is opened only after this.

    The first message on every accepted stream, so it may be heard again.
    """


@dataclass(frozen=True, slots=True)
class Trigger:
    """Take this checkpoint. After a `final` one, read nothing more.

    `times` are those that numbers without records follow behind it.
    """

    checkpoint_id: CheckpointId
    final: bool = False
    times: tuple[FollowedTime, ...] = ()


@dataclass(frozen=True, slots=True)
class Complete:
    """The completion record of this checkpoint exists: commit everything pending up to and including it.

    The only value that `TwoPhaseCommitSink.commit` accepts as its proof.
    """

    checkpoint_id: CheckpointId


@dataclass(frozen=True, slots=True)
class Abort:
    """This checkpoint will not complete. What was pre-committed for it stays pending."""

    checkpoint_id: CheckpointId
    reason: str


@dataclass(frozen=True, slots=True)
class Finish:
    """The final checkpoint is committed everywhere, or the attempt is over: end now."""


@dataclass(frozen=True, slots=True)
class FencedOff:
    """A newer attempt owns the job: end now, commit nothing more."""

    reason: str


@dataclass(frozen=True, slots=True)
class Drain:
    """Read the sources up to this stage to the end that they have now, and no further.

    May be heard again; the first end counts. Stage 0 is a person's drain alone: then time passes for what waits behind
    a stage (windows, timers) before its end is said.
    """

    stage: int = 0


ToSubtask = Welcome | Trigger | Complete | Abort | Finish | FencedOff | Drain


@dataclass(frozen=True, slots=True)
class Ack:
    """This subtask's part of a checkpoint is stored and pre-committed. Durations are those of `SubtaskTimes`.

    `times` are those under the numbers here, of operators that ask for that.
    """

    checkpoint_id: CheckpointId
    snapshot: SubtaskSnapshot
    pause_ms: float = 0.0
    store_ms: float = 0.0
    pre_commit_ms: float = 0.0
    write_ms: float = 0.0
    times: tuple[NumberTimes, ...] = ()

    @property
    def durations(self) -> tuple[float, ...]:
        return (self.pre_commit_ms, self.pause_ms, self.write_ms, self.store_ms)


@dataclass(frozen=True, slots=True)
class Decline:
    """This subtask can't take part in this checkpoint."""

    checkpoint_id: CheckpointId
    reason: str


@dataclass(frozen=True, slots=True)
class Committed:
    """Everything that this subtask had pending up to and including this checkpoint is committed."""

    checkpoint_id: CheckpointId


@dataclass(frozen=True, slots=True)
class EndOfInput:
    """This subtask has read its bounded input to the end, up to this stage of the job.

    It waits for the final checkpoint where no stage is `following`, else for the one after which the next may end.
    """

    stage: int = 0
    following: int = 0


@dataclass(frozen=True, slots=True)
class Failed:
    """This subtask is about to end with an error. `error_type` is a class name of `twopc.errors`, or another's."""

    error_type: str
    message: str
    restartable: bool


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a subtask: for people and monitoring only, never for a decision. Counts are of this attempt.

    `slow` names a user function that doesn't return, and its record; empty if there is none. `new_record_errors` are
    those of a new kind since the report before, at most as many as a report holds. Each of the `figures` holds until it
    is told again.
    """

    records_in: int
    records_out: int
    lag: int | None
    open_transaction: str | None
    pending_transactions: tuple[str, ...] = ()
    slow: str = ""
    new_record_errors: tuple[RecordErrorKind, ...] = ()
    figures: Figures | None = None


ToCoordinator = Ack | Decline | Committed | EndOfInput | Failed | Progress
