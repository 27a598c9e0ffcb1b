"""What it means to restore another checkpoint than the latest completed one, in words. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from twopc.checkpoints.damage import ranges_read_again
from twopc.listing import listed
from twopc.protocol.facts import CheckpointMetadata
from twopc.source import Split


def consequence(
    latest: CheckpointMetadata | None, restored: CheckpointMetadata | None, splits: Iterable[Split]
) -> str | None:
    """Say which output is out already and will be written again, by where reading begins; None where there is none.

    A topic that was deleted and created again since, or is not read any more, is not read again.
    """
    if latest is None or (restored is not None and restored.checkpoint_id == latest.checkpoint_id):
        return None
    begun = {split.partition: split for split in splits}
    read = [
        held
        for held in latest.positions
        if held.partition in begun and held.topic_id in ("", begun[held.partition].topic_id)
    ]
    again = ranges_read_again({partition: split.start for partition, split in begun.items()}, read)
    if not again:
        return None
    which = "nothing is restored" if restored is None else f"checkpoint {restored.checkpoint_id} is restored"
    return (
        f"{which}, as asked, while checkpoint {latest.checkpoint_id} is the latest: readers will see the output of "
        f"this input twice: {listed(again)}"
    )


def consequence_of_copy(restored: CheckpointMetadata) -> str:
    """Say which output may be out already, where how far the job went after a copied checkpoint is not known here."""
    starts = listed(
        f"{held.partition} from offset {held.position}"
        for held in sorted(restored.positions, key=lambda held: held.partition)
    )
    return f"if the job has gone on since, readers will see the output of this input twice: {starts}"
