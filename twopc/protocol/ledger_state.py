"""The state of a job's ledger, derived from its facts in order. Pure.

Invariants, checked as each fact is applied:
- attempts grow; a checkpoint's id is greater than every id reserved before it;
- only a reserved checkpoint of the current attempt completes, and completed ids grow;
- a confirmation names a completed checkpoint; what is lost of one is decided once;
- global commits are confirmed in the order of their checkpoints, and each once, though a later checkpoint names again
  what its subtasks had not let go of yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never

from twopc.errors import CheckpointCorrupted, ForeignFile, NewerFormat, ProtocolViolation
from twopc.protocol.attempt_facts import AttemptEnded, AttemptStarted, StopRequested
from twopc.protocol.codec import to_json
from twopc.protocol.completed_checkpoint import CompletedCheckpoint
from twopc.protocol.envelope import decode_body, encode_fact, open_fact
from twopc.protocol.history import History
from twopc.protocol.ids import NO_CHECKPOINT, AttemptId, CheckpointId
from twopc.protocol.layout import entry_name
from twopc.protocol.ledger_facts import (
    ENTRY_TYPES,
    METADATA_KIND,
    CheckpointCompleted,
    CheckpointReserved,
    CheckpointsDisposed,
    CommittablesConfirmed,
    Entry,
    LossSettled,
)
from twopc.protocol.ledger_place import LedgerPlace
from twopc.protocol.manifest import MANIFEST_KIND
from twopc.protocol.planned_starts import StartsPlanned

SUMMARY_KIND = "summary"


@dataclass(frozen=True, slots=True)
class LedgerState:
    """The state of one job. `completed` is ascending and holds what retention keeps.

    `planned` is where reading begins while no checkpoint has completed. `history` is for people.
    """

    attempt: AttemptStarted | None = None
    ended: AttemptEnded | None = None
    stop: StopRequested | None = None
    last_reserved: CheckpointId = NO_CHECKPOINT
    completed: tuple[CompletedCheckpoint, ...] = ()
    planned: StartsPlanned | None = None
    history: History = field(default_factory=History)

    @property
    def current(self) -> AttemptId:
        """The current attempt; 0 before the first."""
        return self.attempt.attempt if self.attempt else AttemptId(0)

    @property
    def stop_requested(self) -> bool:
        return self.stop is not None

    @property
    def newest(self) -> CompletedCheckpoint | None:
        return self.completed[-1] if self.completed else None

    @property
    def newest_of_attempt(self) -> CheckpointId:
        """The newest, if the current attempt took it, else 0: those of earlier attempts were settled by the driver."""
        if not self.completed or self.attempt is None:
            return NO_CHECKPOINT
        newest = self.completed[-1].record
        return newest.checkpoint_id if newest.attempt == self.attempt.attempt else NO_CHECKPOINT

    @property
    def still_restored(self) -> CheckpointId:
        """The checkpoint that the current attempt was restored from, until it has completed one of its own; else 0."""
        return self.attempt.restored if self.attempt and not self.newest_of_attempt else NO_CHECKPOINT

    @property
    def final_completed(self) -> CheckpointId:
        """The final checkpoint of the current attempt, once it is completed; 0 before."""
        final = self.completed and self.completed[-1].record.kind.ends_job
        return self.newest_of_attempt if final else NO_CHECKPOINT

    @property
    def _still_asked(self) -> StopRequested | None:
        """What is left of a stop when its attempt fails: if the final checkpoint is there, no more than to end.

        One that drains has to read to the end again all the same: lost output may be written again from further back.
        """
        if self.stop is None or not self.final_completed:
            return self.stop
        return StopRequested(self.stop.attempt, drain=self.stop.drain)

    @property
    def next_global_commit(self) -> CompletedCheckpoint | None:
        """The oldest of which a global committer has still something to commit: those after it have to wait."""
        return next((checkpoint for checkpoint in self.completed if checkpoint.globally_outstanding), None)

    def find(self, checkpoint_id: CheckpointId) -> CompletedCheckpoint | None:
        return next((checkpoint for checkpoint in self.completed if checkpoint.checkpoint_id == checkpoint_id), None)

    def apply(self, fact: Entry) -> LedgerState:
        """Return the state after one more fact; raise ProtocolViolation if the fact can't follow."""
        return replace(self._standing_after(fact), history=self.history.after(fact))

    def _standing_after(self, fact: Entry) -> LedgerState:
        match fact:
            case AttemptStarted():
                _require(fact.attempt > self.current, f"attempt {fact.attempt} follows attempt {self.current}")
                stop = self._still_asked if fact.restart else None
                return LedgerState(fact, None, stop, self.last_reserved, self.completed, self.planned)
            case CheckpointReserved():
                _require(
                    fact.checkpoint_id > self.last_reserved,
                    f"checkpoint {fact.checkpoint_id} is reserved after {self.last_reserved}",
                )
                kept = tuple(
                    checkpoint for checkpoint in self.completed if checkpoint.checkpoint_id not in fact.forgotten
                )
                return LedgerState(self.attempt, self.ended, self.stop, fact.checkpoint_id, kept, self.planned)
            case CheckpointCompleted():
                self._check_completion(fact)
                done = (*self.completed, CompletedCheckpoint(fact, self._committed_globally(fact)))
                return LedgerState(self.attempt, self.ended, self.stop, self.last_reserved, done)
            case CommittablesConfirmed():
                self.check_confirmation(fact)
                names = frozenset(fact.names)
                return self._with(tuple([checkpoint.confirm(names, fact) for checkpoint in self.completed]))
            case LossSettled():
                self._check_loss(fact)
                settled = (
                    checkpoint.settle(fact) if checkpoint.checkpoint_id == fact.checkpoint_id else checkpoint
                    for checkpoint in self.completed
                )
                return self._with(tuple(settled))
            case StartsPlanned():
                _require(fact.attempt == self.current, f"attempt {fact.attempt} plans, {self.current} runs")
                return LedgerState(self.attempt, self.ended, self.stop, self.last_reserved, self.completed, fact)
            case StopRequested():
                _require(fact.attempt == self.current, f"attempt {fact.attempt} is stopped, {self.current} runs")
                return LedgerState(self.attempt, self.ended, fact, self.last_reserved, self.completed, self.planned)
            case CheckpointsDisposed():
                kept = tuple(
                    checkpoint for checkpoint in self.completed if checkpoint.checkpoint_id not in fact.forgotten
                )
                return self._with(kept)
            case AttemptEnded():
                _require(fact.attempt == self.current, f"attempt {fact.attempt} ends, {self.current} runs")
                return LedgerState(self.attempt, fact, self.stop, self.last_reserved, self.completed, self.planned)
            case _:
                assert_never(fact)

    def _with(self, completed: tuple[CompletedCheckpoint, ...]) -> LedgerState:
        return LedgerState(self.attempt, self.ended, self.stop, self.last_reserved, completed, self.planned)

    def _check_completion(self, fact: CheckpointCompleted) -> None:
        newest = self.newest.checkpoint_id if self.newest else CheckpointId(0)
        _require(fact.attempt == self.current, f"checkpoint {fact.checkpoint_id} is of attempt {fact.attempt}")
        _require(
            newest < fact.checkpoint_id <= self.last_reserved,
            f"checkpoint {fact.checkpoint_id} completes after {newest}, reserved were {self.last_reserved}",
        )

    def _committed_globally(self, fact: CheckpointCompleted) -> frozenset[str]:
        """What a global committer has committed before of what this checkpoint names: the newest names all of that."""
        return frozenset() if self.newest is None else self.newest.confirmed.intersection(fact.global_committables)

    def check_confirmation(self, fact: CommittablesConfirmed) -> None:
        """Raise ProtocolViolation unless this may be confirmed now."""
        found, due = self.find(fact.checkpoint_id), self.next_global_commit
        _require(found is not None, f"checkpoint {fact.checkpoint_id} is confirmed and not completed")
        _require(
            due is None or due is found or found is None or found.globally_outstanding.isdisjoint(fact.names),
            f"the global commit of checkpoint {fact.checkpoint_id} is confirmed before that of an earlier one",
        )

    def _check_loss(self, fact: LossSettled) -> None:
        found = self.find(fact.checkpoint_id)
        _require(fact.attempt == self.current, f"a loss is settled by attempt {fact.attempt}")
        _require(
            found is not None and found.may_settle(fact),
            f"a loss of checkpoint {fact.checkpoint_id} is settled, while nothing of it is outstanding",
        )


_READERS: dict[str, type[Entry | LedgerState]] = {
    **{each.KIND: each for each in ENTRY_TYPES},
    SUMMARY_KIND: LedgerState,
}


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise ProtocolViolation(f"the ledger contradicts itself: {what}")


def encode_entry(entry: Entry | LedgerState, place: LedgerPlace) -> bytes:
    """The stored form of an entry; a whole state is stored as a summary of all entries before it."""
    kind = SUMMARY_KIND if isinstance(entry, LedgerState) else entry.KIND
    return encode_fact(kind, {"place": to_json(place), "fact": to_json(entry)})


def decode_entry(data: bytes, source: str) -> tuple[LedgerPlace, Entry | LedgerState]:
    """Read an entry back; raise CheckpointCorrupted, naming `source`, if it can't be trusted."""
    kind, body = open_fact(data, source)
    reader = _READERS.get(kind)
    if reader is None and kind in (METADATA_KIND, MANIFEST_KIND):
        raise ForeignFile(f"{source} is a {kind!r}, not a ledger entry of this program")
    if reader is None:
        raise NewerFormat(
            f"{source} was stored by a newer twopc: it is a {kind!r}, which this one doesn't know; use that version, "
            "or a newer one"
        )
    if body.keys() != {"place", "fact"}:
        raise CheckpointCorrupted(f"{source} lacks what a {kind!r} holds, or it was damaged")
    return decode_body(LedgerPlace, body["place"], "place", source), decode_body(reader, body["fact"], kind, source)


def replay(entries: Mapping[int, bytes], job: str, source: str) -> LedgerState:
    """Derive the state from the entries of a job's ledger, by number; `source` is where they are, for messages.

    Entries before the newest summary are only checked to be whole and in their place: it holds what they said, and they
    need not follow each other, as one of a fenced coordinator may stand where an older one was deleted. Raises
    CheckpointCorrupted if an entry is damaged, missing, not of this ledger, or contradicts those before it.
    """
    placed = {number: decode_entry(entries[number], f"{source}/{entry_name(number)}") for number in sorted(entries)}
    decoded = [(number, entry) for number, (_, entry) in placed.items()]
    start = max((index for index, (_, entry) in enumerate(decoded) if isinstance(entry, LedgerState)), default=0)
    for index, (number, (place, _)) in enumerate(placed.items()):
        before = entries.get(number - 1) if index > start else None
        place.check(job, number, before, f"{source}/{entry_name(number)}")
    state = LedgerState()
    expected = decoded[start][0] if decoded and isinstance(decoded[start][1], LedgerState) else 1
    for number, entry in decoded[start:]:
        if number != expected:
            raise CheckpointCorrupted(f"{source}/{entry_name(number - 1)} is missing, while a later entry is there")
        if isinstance(entry, LedgerState):
            state = entry
        else:
            try:
                state = state.apply(entry)
            except ProtocolViolation as error:
                raise CheckpointCorrupted(f"{source}/{entry_name(number)} can't follow: {error}") from error
        expected += 1
    return state
