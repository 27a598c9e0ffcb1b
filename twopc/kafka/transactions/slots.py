"""The transactional producers of a subtask, used in turn.

`SLOT_TRANSITIONS` says what may happen to one when. Invariants:

- A slot is taken again only after a checkpoint has completed that is later than every one that may carry its
  committable: its own, and those that were taken before its commit was known. Until then the committable may be asked
  about, and a later transaction of the same producer is proof that the earlier one was committed.
- Producers are made off the barrier's path: the first ones at `open`, others by a thread beside the loop, when
  checkpoints abort and their transactions stay pending.
- A producer whose commit ended in doubt is closed and made anew under the same rule.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum

from twopc.errors import CheckpointDeclined, Fenced, TwoPhaseCommitError, Unavailable
from twopc.kafka.output.tracked_producer import TrackedProducer
from twopc.protocol.ids import NO_CHECKPOINT, CheckpointId
from twopc.protocol.transitions import Transitions

log = logging.getLogger(__name__)

MOST_SLOTS = 24
RETRY_SECONDS = 1.0


class SlotState(Enum):
    """The state of a slot; the value is for people."""

    FREE = "its producer waits for the next transaction"
    OPEN = "its transaction is written to"
    PRE_COMMITTED = "its transaction waits for the checkpoint to complete"
    SETTLED = "its transaction is committed; the slot rule does not allow another one yet"
    TO_MAKE = "its producer may not know that it has committed, and is made anew"


class SlotEvent(Enum):
    """The events of a slot; the value is for people."""

    TAKEN = "a transaction begins"
    PRE_COMMITTED = "its transaction is pre-committed"
    SETTLED = "its transaction is known to be committed"
    RELEASED = "a later checkpoint has completed than any that may carry its committable"
    GIVEN_UP = "the same, where the producer may not know of the commit"
    MADE = "it has another producer"


SLOT_TRANSITIONS = Transitions(
    "a slot",
    {
        (SlotState.FREE, SlotEvent.TAKEN): SlotState.OPEN,
        (SlotState.OPEN, SlotEvent.PRE_COMMITTED): SlotState.PRE_COMMITTED,
        (SlotState.PRE_COMMITTED, SlotEvent.SETTLED): SlotState.SETTLED,
        (SlotState.SETTLED, SlotEvent.RELEASED): SlotState.FREE,
        (SlotState.SETTLED, SlotEvent.GIVEN_UP): SlotState.TO_MAKE,
        (SlotState.TO_MAKE, SlotEvent.MADE): SlotState.FREE,
    },
)


@dataclass(slots=True, eq=False)
class Slot:
    """One transactional id and its producer.

    `checkpoint` is that of its last pre-commit, 0 before the first; `carried` the last one whose snapshot may hold the
    committable, known once it is committed; `doubtful` asks for another producer.
    """

    transactional_id: str
    producer: TrackedProducer
    state: SlotState = SlotState.FREE
    checkpoint: CheckpointId = NO_CHECKPOINT
    carried: CheckpointId | None = None
    doubtful: bool = False

    def change(self, event: SlotEvent) -> None:
        """Take in an event; raise ProtocolViolation for one that can't happen now."""
        self.state = SLOT_TRANSITIONS.after(self.state, event)


def may_be_taken_again(carried: CheckpointId, completed: CheckpointId) -> bool:
    """The slot rule."""
    return completed > carried


class SlotPool:
    """Lends slots to transactions. Any thread may call; `make` opens the producer of the n-th slot, and may be slow."""

    def __init__(
        self, make: Callable[[int], tuple[str, TrackedProducer]], first: int, spare_after_seconds: float
    ) -> None:
        self._make = make
        self._spare_after = spare_after_seconds
        self._changed = threading.Condition()
        self._closed = False
        self._wanted = False
        self._fenced: Fenced | None = None
        self._last_taken = NO_CHECKPOINT
        with ThreadPoolExecutor(first, "twopc-slots") as executor:
            self._slots = [Slot(*made) for made in executor.map(make, range(first))]
        self._keeper = threading.Thread(target=self._keep, name="twopc-slot-keeper", daemon=True)
        self._keeper.start()

    def take(self, timeout: float) -> Slot:
        """Return a free slot, now open; raise Fenced as soon as making one has told that another run took over."""
        with self._changed:
            self._refuse_fenced()
            slot = self._free() or self._awaited(timeout)
            slot.change(SlotEvent.TAKEN)
            # To wake the keeper takes Python's lock from the data loop.
            if self._free() is None:
                self._changed.notify_all()
            return slot

    def require_room(self) -> None:
        """Raise CheckpointDeclined if pre-committing one more would leave nothing to write to."""
        with self._changed:
            if len(self._slots) >= MOST_SLOTS and self._free() is None:
                raise CheckpointDeclined(
                    f"{MOST_SLOTS} transactions of this subtask wait for a checkpoint to complete; the open one goes on"
                )

    def taken(self, checkpoint: CheckpointId) -> None:
        """This checkpoint is being taken: its snapshot carries every transaction not known to be committed by now."""
        with self._changed:
            self._last_taken = checkpoint

    def pre_committed(self, slot: Slot, checkpoint: CheckpointId) -> None:
        with self._changed:
            slot.change(SlotEvent.PRE_COMMITTED)
            slot.checkpoint = checkpoint
            slot.carried = None

    def find(self, transactional_id: str, checkpoint: CheckpointId) -> Slot | None:
        """Return the slot whose last pre-commit this was."""
        with self._changed:
            for slot in self._slots:
                if slot.transactional_id == transactional_id and slot.checkpoint == checkpoint:
                    return slot
        return None

    def settled(self, slot: Slot, *, doubtful: bool) -> None:
        """Its transaction is committed; `doubtful` if its producer may not know."""
        with self._changed:
            slot.change(SlotEvent.SETTLED)
            slot.doubtful = doubtful

    def release(self, completed: CheckpointId) -> None:
        """Everything up to this checkpoint is known to be committed: free what the slot rule allows."""
        with self._changed:
            for slot in self._slots:
                if slot.state is not SlotState.SETTLED or slot.checkpoint > completed:
                    continue
                if slot.carried is None:
                    # Snapshots that were taken before this commit was known name it too: one of them may still be
                    # settled.
                    slot.carried = max(slot.checkpoint, self._last_taken)
                if may_be_taken_again(slot.carried, completed):
                    # The old producer may still send its EndTxn, which would end the next transaction under this id.
                    slot.change(SlotEvent.GIVEN_UP if slot.doubtful else SlotEvent.RELEASED)
            self._changed.notify_all()

    def close(self) -> None:
        """End the keeper. Transactions stay as they are: destroying a producer aborts nothing."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._keeper.join()
        self._slots.clear()

    def _awaited(self, timeout: float) -> Slot:
        self._wanted = True
        self._changed.notify_all()
        if not self._changed.wait_for(lambda: self._free() is not None or self._fenced is not None, timeout):
            raise Unavailable(f"no transactional producer became ready within {timeout:.0f} s: is the broker slow?")
        self._wanted = False
        self._refuse_fenced()
        slot = self._free()
        assert slot is not None
        return slot

    def _refuse_fenced(self) -> None:
        if self._fenced is not None:
            raise self._fenced

    def _free(self) -> Slot | None:
        return next((slot for slot in self._slots if slot.state is SlotState.FREE), None)

    def _keep(self) -> None:
        """Make what is missing, until closed or fenced."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._to_make() is not None or self._free() is None)
                if self._to_make() is None and not self._wanted:
                    self._changed.wait_for(lambda: self._closed or self._wanted or self._free(), self._spare_after)
                if self._closed or self._fenced is not None:
                    return
                slot = self._to_make()
                if slot is None and (self._free() is not None or len(self._slots) >= MOST_SLOTS):
                    self._changed.wait(RETRY_SECONDS)
                    continue
            self._make_one(slot)

    def _to_make(self) -> Slot | None:
        return next((slot for slot in self._slots if slot.state is SlotState.TO_MAKE), None)

    def _make_one(self, slot: Slot | None) -> None:
        number = len(self._slots) if slot is None else self._slots.index(slot)
        try:
            transactional_id, producer = self._make(number)
        except Fenced as error:
            with self._changed:
                self._fenced = error
                self._changed.notify_all()
            return
        except TwoPhaseCommitError as error:
            level = logging.DEBUG if isinstance(error, Unavailable) else logging.WARNING
            log.log(level, "a transactional producer could not be made, trying again: %s", error)
            with self._changed:
                self._changed.wait_for(lambda: self._closed, RETRY_SECONDS)
            return
        with self._changed:
            if slot is None:
                self._slots.append(Slot(transactional_id, producer))
            else:
                slot.change(SlotEvent.MADE)
                slot.producer, slot.doubtful = producer, False
            self._changed.notify_all()
