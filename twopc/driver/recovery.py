"""What a driver does before the first record of an attempt, in an order that must not change.

0. The attempt is claimed where the output goes: another run, with a ledger of its own, may start at this moment.
1. Every committable of the latest completed checkpoint is settled by asking the broker: a completed checkpoint is a
   promise, whatever is restored afterwards.
2. The confirmations are stored.
3. If output is lost: it is decided, and stored, what becomes of it (`twopc.driver.losses`).
4. Only then is any transactional id initialised again, and what lingers aborted: initialising destroys the evidence
   that steps 1 and 3 need, and fences a zombie of an earlier attempt.
5. The source is planned: every start and stop becomes a position; where nothing is restored, the starts are stored.

A crash anywhere in here is harmless: all of it is done again by the next attempt, and each step is idempotent.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from twopc.context import JobContext
from twopc.driver.losses import accept, accepted, heal, rewritten
from twopc.faults.points import CrashPoint, reached
from twopc.protocol.facts import CheckpointMetadata, SplitPosition
from twopc.protocol.planned_starts import NOTHING_WITNESSED, StartsPlanned, Witnessed
from twopc.rpc.job_client import JobClient, StartedAttempt
from twopc.sink import Committer, Outcome, Settled
from twopc.source import Source, Split

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Recovered:
    """What recovery found and did; `lingering` names the transactions that were aborted, `restored` what to restore."""

    settled: tuple[Settled, ...]
    lingering: tuple[str, ...]
    restored: CheckpointMetadata | None


def recover(
    client: JobClient, source: Source, committer: Committer, context: JobContext, started: StartedAttempt
) -> Recovered:
    """Claim, settle, confirm, decide about losses, abort what lingers; raise TransactionLost if output is gone."""
    committer.claim()
    settled: list[Settled] = []
    latest, restored = started.latest, started.restored
    reached(CrashPoint.DRIVER_BEFORE_SETTLE, checkpoint=0 if latest is None else latest.checkpoint_id)
    if latest is not None:
        due = [item for item in latest.committables if item.name not in started.lost]
        settled = committer.settle(due, started.confirmed)
        reached(CrashPoint.DRIVER_AFTER_SETTLE, checkpoint=latest.checkpoint_id)
        _confirm(client, context, started, latest, settled)
        reached(CrashPoint.DRIVER_AFTER_CONFIRM, checkpoint=latest.checkpoint_id)
        restored = rewritten(client, source, context, started)
        if any(item.outcome is Outcome.LOST for item in settled):
            # A newer attempt settles for itself, and destroys this evidence then: whoever is fenced has lost nothing.
            client.confirm(context.job, context.attempt, latest.checkpoint_id, [])
            restored = _decide(client, source, committer, context, replace(started, restored=restored), settled)
    # Last of all: it initialises the ids, which aborts whatever under them is not settled yet.
    lingering = committer.abort_lingering()
    reached(CrashPoint.DRIVER_AFTER_ABORT_LINGERING, checkpoint=0 if latest is None else latest.checkpoint_id)
    return Recovered(tuple(settled), tuple(lingering), restored)


def _confirm(
    client: JobClient,
    context: JobContext,
    started: StartedAttempt,
    latest: CheckpointMetadata,
    settled: Sequence[Settled],
) -> None:
    kept = [item.committable.name for item in settled if item.outcome in (Outcome.COMMITTED, Outcome.ALREADY_COMMITTED)]
    new = [name for name in kept if name not in started.confirmed]
    if new:
        client.confirm(context.job, context.attempt, latest.checkpoint_id, new)


def _decide(
    client: JobClient,
    source: Source,
    committer: Committer,
    context: JobContext,
    started: StartedAttempt,
    settled: Sequence[Settled],
) -> CheckpointMetadata | None:
    """Return what to restore although output of the latest checkpoint is lost."""
    latest, restored = started.latest, started.restored
    assert latest is not None
    if restored is None or restored.checkpoint_id != latest.checkpoint_id:
        log.warning("output of checkpoint %d is lost; another was named to be restored", latest.checkpoint_id)
        return restored
    lost = {item.committable.name for item in settled if item.outcome is Outcome.LOST}
    if lost <= accepted(context):
        accept(client, committer, context, latest, settled)
        return restored
    return heal(client, source, committer, context, started, settled)


class Planner:
    """Plans the splits of each attempt, and remembers symbolic starts that were resolved before.

    Until a first checkpoint has completed there is nothing to restore: an attempt after a failure, of this driver or of
    another, must then start where the first one did, not at today's "latest", or records between the two would be
    skipped. So the starts are durable before anything is read.
    """

    def __init__(self, source: Source, *, bounded: bool) -> None:
        self._source = source
        self._bounded = bounded
        self._mode = str(source.describe().get("start", ""))
        self._starts: dict[str, SplitPosition] = {}
        self._stops: dict[str, Any] = {}

    def plan(
        self,
        client: JobClient,
        context: JobContext,
        started: StartedAttempt,
        restored: CheckpointMetadata | None,
        witnessed: Witnessed = NOTHING_WITNESSED,
    ) -> list[Split]:
        """Return every split of the job for this attempt; `witnessed` is what the consumer group has."""
        known = self._known(context, started) if restored is None else restored.positions
        positions = {held.split: held for held in known}
        splits = self._source.plan(context, positions, self._bounded)
        for split in splits:
            self._starts.setdefault(split.id, split.begin)
            self._stops.setdefault(split.id, split.stop)
        if restored is None:
            starts = tuple(self._starts[split] for split in sorted(self._starts))
            planned = StartsPlanned(context.attempt, self._mode, starts, witnessed)
            if started.planned is None or planned != replace(started.planned, attempt=context.attempt):
                client.plan_starts(context.job, planned)
        return [replace(split, stop=self._stops[split.id]) for split in splits]

    def _known(self, context: JobContext, started: StartedAttempt) -> Iterable[SplitPosition]:
        planned = started.planned
        if planned is None or planned.mode != self._mode:
            return self._starts.values()
        log.info("no checkpoint has completed yet: reading begins where attempt %d began", planned.attempt)
        return planned.starts


def assign(splits: Sequence[Split], parallelism: int) -> list[tuple[Split, ...]]:
    """Deal the splits out to the subtasks, in turn, in the order of the source's plan."""
    return [tuple(splits[index::parallelism]) for index in range(parallelism)]
