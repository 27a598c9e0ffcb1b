"""The silence of subtasks: which of them are silent, or don't come. Pure; times are monotonic milliseconds.

Silent is one whose stream is gone, and that does not open another. An open stream is no silence, whatever it carries:
gRPC asks the other end every 10 s whether it is there, and ends the stream if it has not answered 10 s later. A host
that froze, or that the network has cut off, is found so; one that this has happened to before its subtask could attach
is found by its absence. All subtasks start at one time, and dial before they load or restore anything.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from coordinator.events import Attached
from coordinator.schedule import earliest
from twopc.protocol.ids import SubtaskIndex

RETURN_MS = 5_000
"""What a subtask has, at least, to open its next stream: if it was the coordinator that stood still, all have ended."""

NAMED_MAX = 10

START_MS = 60_000
"""What subtasks have, at least, to attach for the first time once one of them has: machines start unlike fast."""


@dataclass(slots=True)
class Absences:
    """The subtasks that have not attached to this coordinator, and until when they are waited for: since the first did.

    Before that nothing is known: it may be that there is no room for them. But where the attempt is `resumed`, because
    it is the coordinator that is new, they are waited for since it has known the job: who had attached dials at once.
    """

    parallelism: int
    resumed: bool
    _seen: set[SubtaskIndex] = field(default_factory=set)
    _until: int | None = None

    def begin(self, now: int) -> None:
        """Time passes from now on."""
        if self.resumed and self._until is None:
            self._until = now + START_MS

    def came(self, member: Attached, now: int) -> None:
        """It has attached, and says what its heartbeat time-out is."""
        if not self._seen and member.heartbeat_timeout_ms:
            self._until = now + max(member.heartbeat_timeout_ms, RETURN_MS if self.resumed else START_MS)
        self._seen.add(member.subtask)

    def due(self) -> int | None:
        """The time from which they are waited for no longer; at once where `begin` is still to be called."""
        if len(self._seen) == self.parallelism:
            return None
        return 0 if self.resumed and self._until is None else self._until

    def complaint(self, now: int) -> tuple[SubtaskIndex, str] | None:
        """Name those that have not come in time."""
        due = self.due()
        if due is None or now < due:
            return None
        missing = [SubtaskIndex(each) for each in range(self.parallelism) if each not in self._seen]
        named = ", ".join(map(str, missing[:NAMED_MAX])) + (", ..." if len(missing) > NAMED_MAX else "")
        return missing[0], (
            f"subtask {named} of {self.parallelism} did not reach the coordinator in time, as it should have when "
            f"{'the coordinator was started again' if self.resumed else 'the others did'}: is that machine "
            "frozen, or cut off from the network? --heartbeat-timeout says how long that may take"
        )


@dataclass(slots=True)
class Silences:
    """The subtasks whose stream is gone, each awaited until its heartbeat time-out after it was last heard."""

    _heard: dict[SubtaskIndex, int] = field(default_factory=dict)
    _gone: dict[SubtaskIndex, tuple[Attached, int]] = field(default_factory=dict)

    def heard(self, member: Attached, now: int) -> None:
        """It has said something, or attached."""
        self._heard[member.subtask] = now
        self._gone.pop(member.subtask, None)

    def gone(self, member: Attached, now: int) -> None:
        """Its stream has ended."""
        if member.heartbeat_timeout_ms:
            until = max(self._heard[member.subtask] + member.heartbeat_timeout_ms, now + RETURN_MS)
            self._gone[member.subtask] = (member, until)

    def due(self) -> int | None:
        """The time from which the next of them is waited for no longer."""
        return earliest(until for _, until in self._gone.values())

    def complaint(self, now: int) -> tuple[SubtaskIndex, str] | None:
        """Name the one that has been silent for the longest, if that is too long."""
        overdue = [member for member, until in self._gone.values() if now >= until]
        if not overdue:
            return None
        member = min(overdue, key=lambda each: self._heard[each.subtask])
        silence = (now - self._heard[member.subtask]) / 1000
        return member.subtask, (
            f"subtask {member.subtask} on {member.host} has been silent for {silence:.0f} s: is that machine frozen, "
            "or cut off from the network? --heartbeat-timeout says how long a silence may be"
        )
