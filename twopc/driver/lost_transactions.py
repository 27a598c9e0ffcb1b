"""Lost output of the latest completed checkpoint: the driver heals it, accepts it, or refuses.

Order, which must not change: what is open behind a lost transaction is aborted, or committed, and asked about again;
then the decision is stored; only then may any transactional id be initialised, because that destroys the evidence. A
crash anywhere before the decision is stored finds the same evidence again, and one after it the decision.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from twopc.context import JobContext
from twopc.driver.actions import CommitHeld, Confirm, FindUnreadable, GiveUp, SettleLoss
from twopc.driver.effects import Log, Script, do
from twopc.errors import TransactionLost
from twopc.listing import listed
from twopc.protocol.attempts import StartedAttempt
from twopc.protocol.facts import CheckpointMetadata, SplitPosition, SubtaskSnapshot
from twopc.protocol.healing import Fate, Healed, Refused, missing_input, plan, restored_from
from twopc.sink import Outcome, Settled


def fate(settled: Settled) -> Fate:
    """Return what a settled committable counts as, where losses are decided about."""
    if not settled.holds_output:
        return Fate.NO_OUTPUT
    match settled.outcome:
        case Outcome.COMMITTED | Outcome.ALREADY_COMMITTED:
            return Fate.COMMITTED
        case Outcome.HELD:
            return Fate.HELD
        case Outcome.LOST:
            return Fate.ABORTED if settled.certain else Fate.UNKNOWN


def accepted(context: JobContext) -> frozenset[str]:
    """The names that a person gave with --accept-loss."""
    return frozenset(context.settings.accept_loss)


def rewritten(context: JobContext, started: StartedAttempt) -> Script[CheckpointMetadata | None]:
    """Return what to restore by what was decided before; TransactionLost if input that it needs has gone since.

    A person may accept that by name: then those subtasks go on from the latest checkpoint.
    """
    latest, restored = started.latest, started.restored
    if latest is None or restored is None or restored.checkpoint_id != latest.checkpoint_id:
        return restored
    healed = [snapshot for snapshot in restored.snapshots if snapshot not in latest.snapshots]
    gone = (yield from do(FindUnreadable(context, _positions(healed)))) if healed else {}
    missed = [each for each in healed if missing_input([each], gone)]
    if not missed:
        return restored
    own = {snapshot.subtask: snapshot for snapshot in latest.snapshots}
    concerned = [own[each.subtask] for each in missed]
    names = [item.name for each in concerned for item in each.committables if item.name in started.lost]
    lost = f"Lost: {', '.join(names)}. {_input_of(concerned)}"
    # Whoever is fenced has lost nothing, and accepts nothing.
    yield Confirm(context, latest.checkpoint_id)
    if not accepted(context).issuperset(names):
        why = f"it was to be written again, but {missing_input(missed, gone)}"
        raise TransactionLost(_missing_output(latest, names, why, lost) + _ways_on(names))
    message = f"accepted, by --accept-loss, instead of writing it again. {lost}"
    yield SettleLoss(context, latest.checkpoint_id, tuple(names), {}, message)
    yield Log(logging.WARNING, f"the loss of output of checkpoint {latest.checkpoint_id} is {message}")
    subtasks = {each.subtask for each in missed}
    kept = tuple(own[snapshot.subtask] if snapshot.subtask in subtasks else snapshot for snapshot in restored.snapshots)
    return replace(restored, snapshots=kept)


def heal(context: JobContext, started: StartedAttempt, settled: Sequence[Settled]) -> Script[CheckpointMetadata]:
    """Decide from where lost output is written again, store it, and return what to restore; else TransactionLost."""
    latest = started.latest
    assert latest is not None, "something of it was settled"
    losers = {item.committable.subtask for item in settled if item.outcome is Outcome.LOST}
    candidates = [
        snapshot for metadata in started.earlier for snapshot in metadata.snapshots if snapshot.subtask in losers
    ]
    gone = yield from do(FindUnreadable(context, _positions(candidates)))
    planned = _planned(started, settled, gone)
    held = tuple(item.committable for item in settled if item.outcome is Outcome.HELD)
    if isinstance(planned, Healed) and held:
        given_up = {item.committable.name: item for item in (yield from do(GiveUp(held)))}
        settled = [given_up.get(item.committable.name, item) for item in settled]
        planned = _planned(started, settled, gone)
        if any(item.outcome is Outcome.HELD for item in settled):
            planned = Refused("what is open behind it could not be aborted")
    if isinstance(planned, Refused):
        raise TransactionLost(_refusal(latest, settled, planned, started.earlier))
    bases = ", ".join(f"subtask {subtask} from checkpoint {base}" for subtask, base in sorted(planned.bases.items()))
    message = f"written again: {bases}, instead of {latest.checkpoint_id}. {_loss_text(latest, settled)}"
    yield SettleLoss(context, latest.checkpoint_id, tuple(planned.names), planned.bases, message)
    yield Log(logging.WARNING, f"lost output of checkpoint {latest.checkpoint_id} is {message}")
    return restored_from(latest, planned.bases, started.earlier)


def accept(context: JobContext, latest: CheckpointMetadata, settled: Sequence[Settled]) -> Script[None]:
    """Go on without what is lost, as somebody asked for by name; commit what is whole."""
    held = tuple(item.committable for item in settled if item.outcome is Outcome.HELD)
    committed = (yield from do(CommitHeld(held))) if held else []
    if kept := tuple(item.committable.name for item in committed if item.outcome is not Outcome.LOST):
        yield Confirm(context, latest.checkpoint_id, kept)
    gone = [item for item in (*settled, *committed) if item.outcome is Outcome.LOST]
    message = f"accepted, by --accept-loss. {_loss_text(latest, gone)}"
    names = [item.committable.name for item in gone]
    yield SettleLoss(context, latest.checkpoint_id, tuple(names), {}, message)
    yield Log(logging.WARNING, f"the loss of output of checkpoint {latest.checkpoint_id} is {message}")


def _positions(snapshots: Iterable[SubtaskSnapshot]) -> tuple[SplitPosition, ...]:
    return tuple(dict.fromkeys(position for snapshot in snapshots for position in snapshot.positions))


def _planned(
    started: StartedAttempt, settled: Sequence[Settled], gone: Mapping[SplitPosition, str]
) -> Healed | Refused:
    assert started.latest is not None
    fates = dict.fromkeys(started.lost, Fate.UNKNOWN) | {item.committable.name: fate(item) for item in settled}
    return plan(started.latest, fates, started.earlier, gone)


def _loss_text(latest: CheckpointMetadata, settled: Sequence[Settled]) -> str:
    """Name what is lost, and which input made it."""
    lost = [item for item in settled if item.outcome is Outcome.LOST]
    subtasks = {item.committable.subtask for item in lost}
    evidence = "; ".join(f"{item.committable.name}: {item.evidence}" for item in lost)
    return f"Lost: {evidence}. {_input_of([snapshot for snapshot in latest.snapshots if snapshot.subtask in subtasks])}"


def _input_of(snapshots: Sequence[SubtaskSnapshot]) -> str:
    reach = listed((f"up to {position}" for position in _positions(snapshots)), "unknown")
    return f"The input concerned: {reach}, from the position of the checkpoint before"


def _refusal(
    latest: CheckpointMetadata, settled: Sequence[Settled], refused: Refused, earlier: Iterable[CheckpointMetadata]
) -> str:
    names = [item.committable.name for item in settled if item.outcome is Outcome.LOST]
    why = f"can't be written again by itself: {refused.why}"
    lost = f"{_loss_text(latest, settled)}. No transactional id was initialised"
    again = "" if refused.input_is_gone else _written_again(earlier)
    return _missing_output(latest, names, why, lost) + _ways_on(names) + again


def _missing_output(latest: CheckpointMetadata, names: Sequence[str], why: str, lost: str) -> str:
    return (
        f"{len(names)} pre-committed transaction(s) of completed checkpoint {latest.checkpoint_id} can't be committed "
        f"any more, so the output of their input is missing, and {why}. {lost}. "
    )


def _ways_on(names: Sequence[str]) -> str:
    return f"To go on without that output, from this checkpoint with all state: --accept-loss {','.join(names)}."


def _written_again(earlier: Iterable[CheckpointMetadata]) -> str:
    """Return how a person has it written again, which is no way on where the input for it is gone."""
    newest = max((metadata.checkpoint_id for metadata in earlier), default=None)
    if newest is None:
        return (
            " To write it again there is no earlier checkpoint: --from none begins anew, with empty states, from where "
            "start= of the source says"
        )
    return f" To write it again: --from {newest} (what was written since then, by any subtask, comes twice)"
