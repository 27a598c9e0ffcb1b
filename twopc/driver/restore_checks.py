"""The checks of a start, by what it restores: what is refused, and what is warned of. Pure.

Refused, unless a person asks for it by name:

- the brokers know more of the job than its ledger: readers would see output again, or states would begin empty;
- a restored checkpoint has positions of input that the job no longer reads. No later checkpoint would hold them: if the
  job read that input again later, it would begin anew, and nothing would say so. What it has left in the state of
  operators stays there.

Warned of: output that is out already and will be written again, where another checkpoint than the latest is restored.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from twopc.checkpoints.damage import read_again
from twopc.errors import ConfigurationError
from twopc.graph import JobDefinition
from twopc.listing import listed
from twopc.partition_groups import moved_keys, refuse_uneven
from twopc.protocol.canonical import canonical
from twopc.protocol.facts import CheckpointMetadata, SplitPosition, in_order
from twopc.protocol.planned_starts import NOTHING_WITNESSED, Witnessed
from twopc.source import FollowerStanding, Split

_WAYS_ON = (
    "name the --checkpoint-dir that the job had, or start anew (--from none): with empty states, from where start= of "
    "the source says; what is read again, readers see twice"
)


def refuse_moved_on(
    group: str,
    witnessed: Witnessed,
    latest: Witnessed,
    checkpoint_dir: str,
    accepted: Witnessed | None = None,
) -> None:
    """Raise ConfigurationError if the group has positions that are not of the ledger's latest checkpoint, or before.

    An attempt that wrote them, and is later than that of the ledger's latest checkpoint, is not of this ledger.
    `accepted` is what the group had when the job was last let in with nothing to restore, if it was.
    """
    if witnessed == accepted or (witnessed.checkpoint <= latest.checkpoint and witnessed.attempt <= latest.attempt):
        return
    known = "no completed checkpoint"
    if latest != NOTHING_WITNESSED:
        known = f"nothing later than checkpoint {latest.checkpoint} of attempt {latest.attempt}"
    by = f" of attempt {witnessed.attempt}" if witnessed.attempt else ""
    raise ConfigurationError(
        f"the consumer group {group!r} has the positions of checkpoint {witnessed.checkpoint}{by}, but "
        f"{checkpoint_dir} has {known} of this job: it ran with another checkpoint folder (a relative --checkpoint-dir "
        "depends on where a run is started), or this one was deleted, or another job uses the group. To go on, "
        f"{_WAYS_ON}"
    )


def refuse_emptied_states(states: Collection[str], standing: FollowerStanding, checkpoint_dir: str) -> None:
    """Raise ConfigurationError if states would begin empty where the group is in the middle of the input."""
    if not states or not standing.ahead:
        return
    more = f" (and in {len(standing.ahead) - 1} more)" if len(standing.ahead) > 1 else ""
    raise ConfigurationError(
        f"there is no checkpoint in {checkpoint_dir}, so the states ({', '.join(sorted(states))}) would begin empty, "
        f"but the consumer group would have reading begin in the middle of the input, at {standing.ahead[0]}{more}. "
        "If the job ran before, name the --checkpoint-dir that it had; to begin there with empty states: --from none"
    )


def refuse_unknown_middle(
    states: Collection[str],
    standing: FollowerStanding,
    restored: CheckpointMetadata,
    input_of: Callable[[str], str],
) -> None:
    """Raise ConfigurationError if reading begins in the middle of an input that the checkpoint doesn't know.

    What comes before would be in no state, or in it as it was when the input was given up, and nothing would say so. A
    split added to an input that it knows is read from its first record. `input_of` is the source's.
    """
    known = {input_of(held.split) for held in restored.positions}
    middle = [held for held in standing.ahead if input_of(held.split) not in known]
    if not states or not middle:
        return
    raise ConfigurationError(
        f"checkpoint {restored.checkpoint_id}, to be restored, has no positions of input "
        f"{input_of(middle[0].split)!r}, so the states ({', '.join(sorted(states))}) may lack what comes before, but "
        f"the consumer group would have reading begin in the middle of it, at {listed(middle)}. To go back to an older "
        "checkpoint that has it, name that (`twopc checkpoints list`, --from ID); to begin there with the states as "
        f"they are: --from {restored.checkpoint_id}"
    )


def emptied_states(
    states: Collection[str], splits: Sequence[Split], skips: Callable[[Split], bool], checkpoint_dir: str
) -> str | None:
    """Say that states begin empty while reading goes on somewhere; None where it `skips` nothing."""
    later = [split for split in splits if skips(split)]
    if not states or not later:
        return None
    first = later[0].begin
    more = f" (and in {len(later) - 1} more)" if len(later) > 1 else ""
    return (
        f"there is no checkpoint in {checkpoint_dir}: states ({', '.join(sorted(states))}) begin empty, and reading "
        f"begins at {first}{more}, where the source says. If the job ran before, name the --checkpoint-dir that it had"
    )


def refuse_unread_inputs(
    restored: CheckpointMetadata | None,
    is_read: Callable[[str], bool],
    input_of: Callable[[str], str],
    inputs: Iterable[str],
    dropped: Collection[str],
) -> None:
    """Raise ConfigurationError if the checkpoint stands in splits of input that is neither read nor `dropped`.

    `inputs` are those that the job reads.
    """
    if restored is None:
        return
    read = sorted(set(inputs))
    held = {position.split for position in restored.positions}
    lost = sorted({input_of(split) for split in held if not is_read(split)} - set(dropped))
    if lost:
        raise ConfigurationError(
            f"checkpoint {restored.checkpoint_id}, to be restored, has positions of input {lost[0]!r}, "
            f"and the job does not read all of that (it reads: {listed(read, 'nothing')}), so they would be left "
            f"behind: let the job read it as it did, or give its positions up for good with --drop-inputs "
            f"{','.join(lost)}; what operators have counted of it stays in their state"
        )


def refuse_dropped_but_read(
    restored: CheckpointMetadata | None,
    splits: Iterable[Split],
    input_of: Callable[[str], str],
    dropped: Collection[str],
) -> None:
    """Raise ConfigurationError if the job reads on where a checkpoint stands in an input that a person gives up."""
    held = () if restored is None else restored.positions
    at = {(position.split, canonical(position.position)) for position in held}
    for split in splits:
        if input_of(split.id) in dropped and (split.id, canonical(split.start)) in at:
            raise ConfigurationError(
                f"drop_inputs names input {input_of(split.id)!r}, which the job reads: take it out of one of them"
            )


def goes_back(
    latest: CheckpointMetadata | None, restored: CheckpointMetadata | None, witnessed: Witnessed = NOTHING_WITNESSED
) -> bool:
    """Whether the job goes back to a checkpoint before the latest.

    `witnessed` is what the group knows, where a person named the checkpoint: it may be a copy, of a job that has gone
    on since.
    """
    if latest is None or restored is None:
        return False
    return restored.checkpoint_id < max(latest.checkpoint_id, witnessed.checkpoint)


def repeated_output(
    latest: CheckpointMetadata | None,
    restored: CheckpointMetadata | None,
    splits: Iterable[Split],
    precedes: Callable[[SplitPosition, SplitPosition], bool],
) -> str | None:
    """Say which output is out already and will be written again, by where reading begins; None where there is none.

    `precedes` is the source's. What is not read any more is not read again.
    """
    if latest is None or (restored is not None and restored.checkpoint_id == latest.checkpoint_id):
        return None
    again = read_again((split.begin for split in splits), latest.positions, precedes)
    if not again:
        return None
    which = "nothing is restored" if restored is None else f"checkpoint {restored.checkpoint_id} is restored"
    return (
        f"{which}, as asked, while checkpoint {latest.checkpoint_id} is the latest: readers will see the output of "
        f"this input twice: {listed(again)}"
    )


def repeated_output_of_copy(restored: CheckpointMetadata) -> str:
    """Say which output may be out already, where how far the job went after a copied checkpoint is not known here."""
    starts = listed(f"from {held} on" for held in in_order(restored.positions))
    return f"if the job has gone on since, readers will see the output of this input twice: {starts}"


def refuse_uneven_inputs(job: str, definition: JobDefinition, splits: Sequence[Split]) -> None:
    """Raise ConfigurationError where inputs that meet at a keyed operator have different numbers of partitions."""

    def named(split: Split) -> str:
        """Return the name of a split's input; of a source that names none, the source's operator id."""
        source = definition.sources[split.source]
        name = source.input_of(split.id)
        return name if source.reads(name) else split.source

    refuse_uneven(job, splits, definition.keyed_inputs, named)


def moved_keys_of(definition: JobDefinition, before: Collection[str], splits: Sequence[Split]) -> dict[str, str]:
    """Say of which keyed operators of a job the keys are elsewhere than when splits of these ids were read."""
    return moved_keys(before, splits, definition.keyed_inputs, definition.source.input_of)
