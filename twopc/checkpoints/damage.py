"""The damage of a job's checkpoint and the ways out, in the same words, whichever command meets it.

A reader of a checkpoint stops at the first error, and knows it by what it was doing. So commands tell what
`twopc.checkpoints.files.examine` finds instead: the same file has the same name of damage everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import ne

from twopc.checkpoints.catalog import JobCheckpoints, read_job
from twopc.checkpoints.files import examine
from twopc.checkpoints.findings import Examination, WrongFile
from twopc.errors import CheckpointCorrupted, ConfigurationError
from twopc.listing import MOST, listed
from twopc.protocol.facts import CheckpointMetadata, SplitPosition, in_order, position_text
from twopc.protocol.ids import CheckpointId
from twopc.storage.store import CheckpointStore

_NOTHING_OLDER = "Nothing older is restored by itself, because the output is out already: "
_COPY_BACK = "copy what is wrong back from a backup, "


def refusal(
    first: CheckpointCorrupted, root: CheckpointStore, job: str, checkpoint_id: CheckpointId | None = None
) -> CheckpointCorrupted:
    """Return the error that names all that is wrong with a checkpoint, of which `first` was met; the newest if None.

    Where the folder can't be looked into from here, or is whole now, `first` is what is known.
    """
    try:
        known = _readable(root, job)
        if checkpoint_id is None and known is not None and known.completed:
            checkpoint_id = known.completed[-1].checkpoint_id
        examined = examine(root, job, checkpoint_id)
    except (ConfigurationError, OSError):
        return first
    if not examined.findings:
        return first
    return CheckpointCorrupted(words(examined, root, known, checkpoint_id))


def verdict(examined: Examination, root: CheckpointStore, checkpoint_id: CheckpointId | None) -> CheckpointCorrupted:
    """Return the error that names what was found wrong with one checkpoint, or with all of a job if None."""
    return CheckpointCorrupted(words(examined, root, _readable(root, examined.job), checkpoint_id))


def read_whole_ledger(root: CheckpointStore, job: str) -> JobCheckpoints:
    """Read a job's checkpoints as `read_job` does; raise CheckpointCorrupted, in these words, if it can't."""
    try:
        return read_job(root, job)
    except CheckpointCorrupted as error:
        raise refusal(error, root, job) from error


def _readable(root: CheckpointStore, job: str) -> JobCheckpoints | None:
    try:
        return read_job(root, job)
    except CheckpointCorrupted:
        return None


def words(
    examined: Examination, root: CheckpointStore, known: JobCheckpoints | None, checkpoint_id: CheckpointId | None
) -> str:
    """Say what is wrong, and what to do; `known` is what the ledger says, None if that can't be read."""
    which = f"job {examined.job!r}" if checkpoint_id is None else f"checkpoint {checkpoint_id} of job {examined.job!r}"
    wrong = "; ".join(str(WrongFile(finding)) for finding in examined.findings[:MOST])
    if more := len(examined.findings) - MOST:
        wrong += f"; and {more} more" if more > 0 else ""
    return f"{which} in {root.place()} is not as it was stored: {wrong}. {_way_on(known, checkpoint_id)}"


def _way_on(known: JobCheckpoints | None, checkpoint_id: CheckpointId | None) -> str:
    if known is None:
        return (
            f"{_NOTHING_OLDER}{_COPY_BACK}or go on from a copy that `twopc checkpoints copy` made, with --from COPY "
            "and another --checkpoint-dir: readers will then see twice the output of what was read since"
        )
    whole = {entry.checkpoint_id: entry.metadata for entry in known.completed if entry.metadata is not None}
    if checkpoint_id is None:
        return (
            f"{_NOTHING_OLDER}{_COPY_BACK}or go back to one of which nothing is wrong, with --from ID: readers will "
            "then see twice the output of what was read since"
        )
    older = max((each for each in whole if each < checkpoint_id), default=None)
    if older is None:
        return (
            f"{_NOTHING_OLDER}{_COPY_BACK}or start anew, without any state, with --from none: no older checkpoint that "
            "can be read is kept"
        )
    twice = _since(whole[older], whole.get(known.completed[-1].checkpoint_id))
    return (
        f"{_NOTHING_OLDER}{_COPY_BACK}or go back with --from {older} (`twopc checkpoints verify {older}` says whether "
        f"that one is whole): readers will then see the output of this input twice: {twice}"
    )


def _since(restored: CheckpointMetadata, latest: CheckpointMetadata | None) -> str:
    if latest is None:
        return listed(f"from {held} on" for held in in_order(restored.positions))
    return listed(read_again(restored.positions, latest.positions), "none")


def read_again(
    starts: Iterable[SplitPosition],
    read: Iterable[SplitPosition],
    precedes: Callable[[SplitPosition, SplitPosition], bool] = ne,
) -> list[str]:
    """Name the input of which reading begins before what was read already; `read` is from later than `starts`."""
    begun = {held.split: held for held in starts}
    return [
        f"{begun[held.split]} up to {position_text(held.position)}"
        for held in in_order(read)
        if held.split in begun and precedes(begun[held.split], held)
    ]
