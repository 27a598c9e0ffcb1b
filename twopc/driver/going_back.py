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


def after_damage(job: str, restored: CheckpointMetadata, checkpoint_dir: str) -> str:
    """Say what a person may do whose checkpoint can't be restored."""
    return (
        f"This is needed to restore checkpoint {restored.checkpoint_id} of job {job!r} in {checkpoint_dir}, and "
        "nothing older is restored by itself, because the output is out already. `twopc checkpoints verify` names "
        "all that is damaged, to copy back from a backup; `twopc checkpoints list` has the older ones, to go back to "
        "with --from: "
        f"readers will then see twice the output of what was read since, up to {listed(_ends(restored))}"
    )


def _ends(restored: CheckpointMetadata) -> list[str]:
    held = sorted(restored.positions, key=lambda held: held.partition)
    return [f"{each.partition} offset {each.position}" for each in held]
