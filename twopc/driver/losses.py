"""What a driver does about output of the latest completed checkpoint that is lost: heals it, accepts it, or refuses.

Order, which must not change: what is open behind a lost transaction is aborted, or committed, and asked about again;
then the decision is stored; only then may any transactional id be initialised, because that destroys the evidence. A
crash anywhere before the decision is stored finds the same evidence again, and one after it the decision.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from twopc.errors import TransactionLost
from twopc.protocol.facts import CheckpointMetadata
from twopc.protocol.healing import Fate, Healed, Refused, plan, restored_from
from twopc.rpc.job_client import JobClient, StartedAttempt
from twopc.sink import JobContext, Outcome, Settled, TwoPhaseCommitSink

log = logging.getLogger(__name__)


def fate(settled: Settled) -> Fate:
    """What a settled committable counts as, where losses are decided about."""
    match settled.outcome:
        case Outcome.COMMITTED | Outcome.ALREADY_COMMITTED:
            return Fate.COMMITTED
        case Outcome.HELD:
            return Fate.HELD
        case Outcome.LOST:
            return Fate.ABORTED if settled.certain else Fate.UNKNOWN


def heal(
    client: JobClient,
    sink: TwoPhaseCommitSink[Any],
    context: JobContext,
    started: StartedAttempt,
    settled: Sequence[Settled],
) -> CheckpointMetadata:
    """Decide from where lost output is written again, store it, and return what to restore; else TransactionLost."""
    latest = started.latest
    assert latest is not None, "something of it was settled"
    planned = _planned(started, settled)
    held = [item.committable for item in settled if item.outcome is Outcome.HELD]
    if isinstance(planned, Healed) and held:
        given_up = {item.committable.name: item for item in sink.give_up(context, held)}
        settled = [given_up.get(item.committable.name, item) for item in settled]
        planned = _planned(started, settled)
        if any(item.outcome is Outcome.HELD for item in settled):
            planned = Refused("what is open behind it could not be aborted")
    if isinstance(planned, Refused):
        raise TransactionLost(_refusal(latest, settled, planned))
    bases = ", ".join(f"subtask {subtask} from checkpoint {base}" for subtask, base in sorted(planned.bases.items()))
    message = f"written again: {bases}, instead of {latest.checkpoint_id}. {_what(latest, settled)}"
    client.settle_loss(context.job, context.attempt, latest.checkpoint_id, planned.names, planned.bases, message)
    log.warning("lost output of checkpoint %d is %s", latest.checkpoint_id, message)
    return restored_from(latest, planned.bases, started.earlier)


def accept(
    client: JobClient,
    sink: TwoPhaseCommitSink[Any],
    context: JobContext,
    latest: CheckpointMetadata,
    settled: Sequence[Settled],
) -> None:
    """Go on without what is lost, as somebody asked for by name; commit what is whole."""
    held = [item.committable for item in settled if item.outcome is Outcome.HELD]
    committed = sink.commit_held(context, held) if held else []
    kept = [item.committable.name for item in committed if item.outcome is not Outcome.LOST]
    if kept:
        client.confirm(context.job, context.attempt, latest.checkpoint_id, kept)
    gone = [item for item in (*settled, *committed) if item.outcome is Outcome.LOST]
    message = f"accepted, by --accept-loss. {_what(latest, gone)}"
    names = [item.committable.name for item in gone]
    client.settle_loss(context.job, context.attempt, latest.checkpoint_id, names, {}, message)
    log.warning("the loss of output of checkpoint %d is %s", latest.checkpoint_id, message)


def _planned(started: StartedAttempt, settled: Sequence[Settled]) -> Healed | Refused:
    assert started.latest is not None
    fates = dict.fromkeys(started.lost, Fate.UNKNOWN) | {item.committable.name: fate(item) for item in settled}
    return plan(started.latest, fates, started.earlier)


def _what(latest: CheckpointMetadata, settled: Sequence[Settled]) -> str:
    """Name what is lost, and which input made it."""
    lost = [item for item in settled if item.outcome is Outcome.LOST]
    subtasks = {item.committable.subtask for item in lost}
    reach = ", ".join(
        f"{position.partition} up to offset {position.position}"
        for snapshot in latest.snapshots
        if snapshot.subtask in subtasks
        for position in snapshot.positions
    )
    evidence = "; ".join(f"{item.committable.name}: {item.evidence}" for item in lost)
    return f"Lost: {evidence}. The input concerned: {reach or 'unknown'}, from the position of the checkpoint before"


def _refusal(latest: CheckpointMetadata, settled: Sequence[Settled], refused: Refused) -> str:
    lost = [item for item in settled if item.outcome is Outcome.LOST]
    names = ",".join(item.committable.name for item in lost)
    return (
        f"{len(lost)} pre-committed transaction(s) of completed checkpoint {latest.checkpoint_id} can't be committed "
        f"any more, so the output of their input is missing, and can't be written again by itself: {refused.why}. "
        f"{_what(latest, settled)}. No transactional id was initialised. To go on without that output: "
        f"--accept-loss {names}. To write it again from an earlier checkpoint: --from ID (what was written since then, "
        "by any subtask, comes twice)."
    )
