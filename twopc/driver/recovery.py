"""The recovery of a job, before the first record of an attempt, in an order that must not change.

0. The attempt is claimed where the output goes: another run, with a ledger of its own, may start at this moment.
1. Every committable of the latest completed checkpoint is settled by asking the broker: a completed checkpoint is a
   promise, whatever is restored afterwards.
2. The confirmations are stored.
3. If output is lost: it is decided, and stored, what becomes of it (`twopc.driver.lost_transactions`).
4. What completed checkpoints have outstanding is committed globally: a sink may then take whatever else it finds of
   earlier attempts for garbage.
5. Only then is any transactional id initialised again, and what lingers aborted: initialising destroys the evidence
   that steps 1 and 3 need, and fences a zombie of an earlier attempt.
6. The source is planned: every start and stop becomes a position; where nothing is restored, the starts are stored.

A crash anywhere in here is harmless: all of it is done again by the next attempt, and each step is idempotent.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from twopc.context import JobContext
from twopc.driver.actions import (
    AbortLingering,
    Claim,
    CompareOutputs,
    Confirm,
    FindCourse,
    PlanSplits,
    Reach,
    Settle,
    StoreStarts,
)
from twopc.driver.effects import Log, Script, do
from twopc.driver.lost_global_commits import committed_globally
from twopc.driver.lost_transactions import accept, accepted, heal, rewritten
from twopc.driver.restore_checks import refuse_uneven_inputs
from twopc.faults.crash_table import CrashPoint
from twopc.graph import JobDefinition
from twopc.protocol.attempts import StartedAttempt
from twopc.protocol.facts import CheckpointMetadata, SplitPosition
from twopc.protocol.ids import NO_CHECKPOINT
from twopc.protocol.planned_starts import NOTHING_WITNESSED, StartsPlanned, Witnessed
from twopc.sink import Outcome, Settled
from twopc.source import Split


@dataclass(frozen=True, slots=True)
class RecoveryResult:
    """The result of a recovery; `lingering` names the transactions that were aborted, `restored` what to restore."""

    settled: tuple[Settled, ...]
    lingering: tuple[str, ...]
    restored: CheckpointMetadata | None


def recovery(context: JobContext, started: StartedAttempt) -> Script[RecoveryResult]:
    """Claim, settle, confirm, decide about losses, abort what lingers; raise TransactionLost if output is gone."""
    yield Claim()
    settled: list[Settled] = []
    latest, restored = started.latest, started.restored
    settled_id = NO_CHECKPOINT if latest is None else latest.checkpoint_id
    yield Reach(CrashPoint.DRIVER_BEFORE_SETTLE, settled_id)
    if latest is not None:
        due = tuple(item for item in latest.committables if item.name not in started.lost)
        settled = yield from do(Settle(due, started.confirmed))
        yield Reach(CrashPoint.DRIVER_AFTER_SETTLE, settled_id)
        global_ = {item.name for item in latest.committables if item.is_global}
        if names := _newly_confirmed(settled, started.confirmed | global_):
            yield Confirm(context, settled_id, names)
        yield Reach(CrashPoint.DRIVER_AFTER_CONFIRM, settled_id)
        restored = yield from rewritten(context, started)
        if any(item.outcome is Outcome.LOST for item in settled):
            # A newer attempt settles for itself, and destroys this evidence then: whoever is fenced has lost nothing.
            yield Confirm(context, settled_id)
            restored = yield from _past_losses(context, replace(started, restored=restored), settled)
        yield from committed_globally(context)
    # Last of all: it initialises the ids, which aborts whatever under them is not settled yet.
    lingering = yield from do(AbortLingering())
    yield Reach(CrashPoint.DRIVER_AFTER_ABORT_LINGERING, settled_id)
    if latest is not None and latest.outputs:
        yield CompareOutputs(latest.outputs)
    return RecoveryResult(tuple(settled), tuple(lingering), restored)


def _newly_confirmed(settled: Sequence[Settled], confirmed: frozenset[str]) -> tuple[str, ...]:
    kept = [item.committable.name for item in settled if item.outcome in (Outcome.COMMITTED, Outcome.ALREADY_COMMITTED)]
    return tuple(name for name in kept if name not in confirmed)


def _past_losses(
    context: JobContext, started: StartedAttempt, settled: Sequence[Settled]
) -> Script[CheckpointMetadata | None]:
    """Return what to restore although output of the latest checkpoint is lost."""
    latest, restored = started.latest, started.restored
    assert latest is not None
    if restored is None or restored.checkpoint_id != latest.checkpoint_id:
        message = f"output of checkpoint {latest.checkpoint_id} is lost; another was named to be restored"
        yield Log(logging.WARNING, message)
        return restored
    lost = {item.committable.name for item in settled if item.outcome is Outcome.LOST}
    if lost <= accepted(context):
        yield from accept(context, latest, settled)
        return restored
    return (yield from heal(context, started, settled))


class Planner:
    """Plans the splits of each attempt, and remembers symbolic starts that were resolved before.

    Until a first checkpoint has completed there is nothing to restore: an attempt after a failure, of this driver or of
    another, must then start where the first one did, not at today's "latest", or records between the two would be
    skipped. So the starts are durable before anything is read.
    """

    def __init__(self, definition: JobDefinition, *, bounded: bool) -> None:
        self._definition = definition
        self._bounded = bounded
        self._mode = str(definition.source.describe().get("start", ""))
        self._starts: dict[str, SplitPosition] = {}
        self._stops: dict[str, Any] = {}

    def plan(
        self,
        context: JobContext,
        started: StartedAttempt,
        restored: CheckpointMetadata | None,
        witnessed: Witnessed = NOTHING_WITNESSED,
        *,
        goes_back: bool = False,
    ) -> Script[list[Split]]:
        """Return every split of the job for this attempt; `witnessed` is what the consumer group has.

        Of a job that `goes_back` to an older checkpoint, what it has written for itself since then is not read.
        """
        known: Iterable[SplitPosition] = self._starts.values()
        if restored is not None:
            known = restored.positions
        elif started.planned is not None and started.planned.mode == self._mode:
            since = started.planned.attempt
            yield Log(logging.INFO, f"no checkpoint has completed yet: reading begins where attempt {since} began")
            known = started.planned.starts
        positions = {held.split: held for held in known}
        if goes_back and restored is not None:
            passing = yield from do(FindCourse(context, restored))
            positions |= {held.split: held for held in passing}
        splits = yield from do(PlanSplits(context, positions, self._bounded))
        refuse_uneven_inputs(context.job, self._definition, splits)
        for split in splits:
            self._starts.setdefault(split.id, split.begin)
            self._stops.setdefault(split.id, split.stop)
        if restored is None:
            starts = tuple(self._starts[split] for split in sorted(self._starts))
            planned = StartsPlanned(context.attempt, self._mode, starts, witnessed)
            if started.planned is None or planned != replace(started.planned, attempt=context.attempt):
                yield StoreStarts(context.job, planned)
        return [replace(split, stop=self._stops[split.id]) for split in splits]
