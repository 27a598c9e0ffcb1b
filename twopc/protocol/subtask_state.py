"""The decisions of a subtask about each message: no resources.

    Welcome     --> nothing: it has done its work before the sink was opened
    Trigger(n)  --> take the checkpoint, unless n is not greater than the last id seen in this attempt
    Complete(n) --> commit everything pending up to and including n, oldest first (a lost Complete is subsumed);
                    nothing, if a later one was heard before
    Abort(n)    --> nothing: what was pre-committed for n is committed with the next completed checkpoint (Flink's rule)
    Drain(k)    --> read the sources up to stage k to the end that they have now; Drain(0), which a person asks for:
                    and then let time pass for what waits there
    Finish      --> end
    FencedOff   --> end, committing nothing more

Invariants:

- A checkpoint id is taken at most once in an attempt, and ids taken only grow: a repeated trigger would pre-commit
  records that belong to a later checkpoint.
- A transaction leaves `pending` only by being committed. It is in every snapshot until then.
- Commits are handed out once each, in the order of their checkpoints, and only against a Complete.
- After a final trigger nothing is read any more; if that checkpoint is aborted, another final one follows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from twopc.protocol.facts import Committable, SplitPosition
from twopc.protocol.ids import NO_CHECKPOINT, CheckpointId
from twopc.protocol.messages import Abort, Complete, Drain, FencedOff, Finish, ToSubtask, Trigger, Welcome


@dataclass(frozen=True, slots=True)
class PreCommitted:
    """One checkpoint that this subtask has pre-committed; no committables if its interval wrote nothing."""

    checkpoint_id: CheckpointId
    committables: tuple[Committable, ...]
    positions: tuple[SplitPosition, ...]


@dataclass(frozen=True, slots=True)
class TakeCheckpoint:
    """Pre-commit, take a snapshot, store and acknowledge it."""

    trigger: Trigger


@dataclass(frozen=True, slots=True)
class CommitPending:
    """Commit these, in this order, then report the proof's checkpoint as committed; there may be none left."""

    proof: Complete
    due: tuple[PreCommitted, ...]


@dataclass(frozen=True, slots=True)
class ReadToEnd:
    """Read the sources up to this stage no further than the end that they have now."""

    stage: int = 0


@dataclass(frozen=True, slots=True)
class End:
    """Stop; `fenced` says why, if it was not the regular end."""

    fenced: str | None = None


@dataclass(frozen=True, slots=True)
class Ignore:
    """Nothing to do."""


Action = TakeCheckpoint | CommitPending | ReadToEnd | End | Ignore


class SubtaskState:
    """The protocol state of one subtask in one attempt. Used by one thread."""

    def __init__(self, base: CheckpointId = NO_CHECKPOINT) -> None:
        """`base` is the checkpoint that was restored; see `SubtaskSnapshot.base`."""
        self.base = base
        self.last_seen = CheckpointId(0)
        self.reading = True
        self.draining = False
        self._pending: list[PreCommitted] = []
        self._handed_out = CheckpointId(0)

    @property
    def committables(self) -> tuple[Committable, ...]:
        """The committables for the next snapshot: all that are pre-committed and not known to be committed."""
        return tuple(committable for entry in self._pending for committable in entry.committables)

    @property
    def awaits_completion(self) -> bool:
        """Whether something is pre-committed: what readers see waits for the next message."""
        return bool(self._pending)

    def on(self, message: ToSubtask) -> Action:
        """Decide about one message."""
        match message:
            case Trigger():
                # A trigger may come twice. Taken twice, one id would commit what was written behind its checkpoint.
                if message.checkpoint_id <= self.last_seen:
                    return Ignore()
                self.last_seen = message.checkpoint_id
                self.reading = self.reading and not message.final
                return TakeCheckpoint(message)
            case Complete() if message.checkpoint_id < self._handed_out:
                return Ignore()
            case Complete():
                # Everything up to this id, since an earlier notification may be lost. Nothing beyond it: later ones may
                # yet abort.
                due = tuple(
                    entry for entry in self._pending if self._handed_out < entry.checkpoint_id <= message.checkpoint_id
                )
                self._handed_out = max(self._handed_out, message.checkpoint_id)
                return CommitPending(message, due)
            # What an aborted checkpoint pre-committed stays pending: its input is never read again.
            case Abort() | Welcome():
                return Ignore()
            case Drain():
                # Of later stages subtasks hear where bounded input has ended, too: what waits for its time then waits.
                self.draining = self.draining or message.stage == 0
                return ReadToEnd(message.stage)
            case Finish():
                return End()
            case FencedOff():
                return End(fenced=message.reason)
        assert_never(message)

    def pre_committed(self, entry: PreCommitted) -> None:
        """Remember what was pre-committed for the checkpoint being taken."""
        assert entry.checkpoint_id == self.last_seen, "only the checkpoint being taken can be pre-committed"
        self._pending.append(entry)

    def committed(self, checkpoint_id: CheckpointId) -> None:
        """Everything handed out up to this checkpoint is committed."""
        assert checkpoint_id <= self._handed_out, "committed without a completion"
        done = [entry.checkpoint_id for entry in self._pending if entry.checkpoint_id <= checkpoint_id]
        self.base = max(done, default=self.base)
        self._pending = [entry for entry in self._pending if entry.checkpoint_id > checkpoint_id]
