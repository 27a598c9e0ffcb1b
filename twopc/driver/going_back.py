"""What it means to restore another checkpoint than the latest completed one, in words. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from twopc.checkpoints.damage import read_again
from twopc.listing import listed
from twopc.protocol.facts import CheckpointMetadata, SplitPosition, in_order
from twopc.source import Split


def consequence(
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


def consequence_of_copy(restored: CheckpointMetadata) -> str:
    """Say which output may be out already, where how far the job went after a copied checkpoint is not known here."""
    starts = listed(f"from {held} on" for held in in_order(restored.positions))
    return f"if the job has gone on since, readers will see the output of this input twice: {starts}"
