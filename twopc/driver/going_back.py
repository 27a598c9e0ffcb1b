"""What it means to restore another checkpoint than the latest completed one, in words. Pure."""

from __future__ import annotations

from twopc.listing import listed
from twopc.protocol.facts import CheckpointMetadata
from twopc.protocol.ids import TopicPartition


def consequence(latest: CheckpointMetadata | None, restored: CheckpointMetadata | None) -> str | None:
    """Say which output is out already and will be written again; None where there is none."""
    if latest is None or (restored is not None and restored.checkpoint_id == latest.checkpoint_id):
        return None
    starts = {} if restored is None else {held.partition: int(held.position) for held in restored.positions}
    again = [
        f"{held.partition} {_range(starts, held.partition, int(held.position))}"
        for held in sorted(latest.positions, key=lambda held: held.partition)
        if starts.get(held.partition) != held.position
    ]
    if not again:
        return None
    which = "nothing is restored" if restored is None else f"checkpoint {restored.checkpoint_id} is restored"
    return (
        f"{which}, as asked, while checkpoint {latest.checkpoint_id} is the latest: readers will see the output of "
        f"this input twice: {listed(again)}"
    )


def _range(starts: dict[TopicPartition, int], partition: TopicPartition, end: int) -> str:
    if partition not in starts:
        return f"what is read again before offset {end}"
    return f"offsets {starts[partition]} to {end - 1}"


def consequence_of_copy(restored: CheckpointMetadata) -> str:
    """Say which output may be out already, where how far the job went after a copied checkpoint is not known here."""
    starts = listed(
        f"{held.partition} from offset {held.position}"
        for held in sorted(restored.positions, key=lambda held: held.partition)
    )
    return f"if the job has gone on since, readers will see the output of this input twice: {starts}"
