"""The tables of transitions: every cell is walked. That of phases is held against all that the simulation plays."""

from __future__ import annotations

import itertools
from enum import Enum
from typing import Any

import pytest

from coordinator.checkpoint import (
    CHECKPOINT_TRANSITIONS,
    EVENT_OF_REASON,
    Change,
    CheckpointEvent,
    CheckpointPhase,
    CheckpointRequest,
    PendingCheckpoint,
)
from tests.coordinator.kit import checkpoint
from twopc.errors import ProtocolViolation
from twopc.kafka.transactions.slots import SLOT_TRANSITIONS, Slot, SlotEvent, SlotState
from twopc.protocol.checkpoints import CheckpointKind, FailureReason
from twopc.protocol.ids import AttemptId
from twopc.protocol.times import Instant

ENDED = (CheckpointPhase.COMPLETED, CheckpointPhase.ABORTED, CheckpointPhase.EXPIRED, CheckpointPhase.SUBSUMED)
CHECKPOINT_CELLS = {(before, event): change for before, event, change in CHECKPOINT_TRANSITIONS}
SLOT_CELLS = {(before, event): after for before, event, after in SLOT_TRANSITIONS}


def pending(phase: CheckpointPhase = CheckpointPhase.PENDING) -> PendingCheckpoint:
    request = CheckpointRequest(CheckpointKind.PERIODIC, Instant(0, 0))
    return PendingCheckpoint(checkpoint(1), AttemptId(1), request, 2, Instant(0, 0), phase)


@pytest.mark.parametrize(("phase", "event"), [*itertools.product(CheckpointPhase, CheckpointEvent)], ids=str)
def test_a_checkpoint_does_what_its_cell_says_and_nothing_else(phase: CheckpointPhase, event: CheckpointEvent) -> None:
    held, change = pending(phase), CHECKPOINT_CELLS.get((phase, event))
    if change is None:
        with pytest.raises(ProtocolViolation, match=phase.name):
            held.change(event)
        assert held.phase is phase
    else:
        assert Change(held.phase, held.change(event)) == Change(phase, change.effect)
        assert held.phase is change.phase


def test_a_checkpoint_that_has_ended_stays_as_it_is() -> None:
    assert not [cell for cell in CHECKPOINT_CELLS if cell[0] in ENDED]


def test_a_triggered_checkpoint_is_what_follows_from_a_stored_id() -> None:
    after = CHECKPOINT_TRANSITIONS.after(CheckpointPhase.REQUESTED, CheckpointEvent.ID_STORED)
    assert pending().phase is after.phase


def test_only_a_checkpoint_that_all_have_acknowledged_completes() -> None:
    completing = [cell for cell, change in CHECKPOINT_CELLS.items() if change.phase is CheckpointPhase.COMPLETED]
    assert completing == [(CheckpointPhase.ACKNOWLEDGED, CheckpointEvent.COMPLETION_STORED)]


@pytest.mark.parametrize("reason", [*FailureReason], ids=str)
def test_every_reason_ends_a_checkpoint_in_some_phase_but_that_of_a_full_queue(reason: FailureReason) -> None:
    if reason is FailureReason.TOO_MANY_CHECKPOINT_REQUESTS:
        assert reason not in EVENT_OF_REASON
    else:
        event = EVENT_OF_REASON[reason]
        assert any(change.phase in ENDED for cell, change in CHECKPOINT_CELLS.items() if cell[1] is event)


@pytest.mark.parametrize(("state", "event"), [*itertools.product(SlotState, SlotEvent)], ids=str)
def test_a_slot_does_what_its_cell_says_and_nothing_else(state: SlotState, event: SlotEvent) -> None:
    channel: Any = None
    slot, after = Slot("t", channel, state), SLOT_CELLS.get((state, event))
    if after is None:
        with pytest.raises(ProtocolViolation, match=state.name):
            slot.change(event)
    else:
        slot.change(event)
    assert slot.state is (after or state)


@pytest.mark.parametrize(
    ("first", "cells"),
    [
        (CheckpointPhase.REQUESTED, {cell: change.phase for cell, change in CHECKPOINT_CELLS.items()}),
        (SlotState.FREE, SLOT_CELLS),
    ],
    ids=["checkpoint", "slot"],
)
def test_every_state_is_reached(first: Enum, cells: dict[tuple[Enum, Enum], Enum]) -> None:
    reached = {first}
    for _ in cells:
        reached |= {after for (before, _), after in cells.items() if before in reached}
    assert reached == set(type(first))
