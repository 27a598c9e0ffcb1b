"""The topics that a job has made for itself by `key_by`, as its checkpoints tell of them."""

from __future__ import annotations

from twopc.checkpoints.catalog import read_job
from twopc.kafka.positions.partition_position import input_of
from twopc.storage.store import CheckpointStore


def own_topics(root: CheckpointStore, job: str) -> list[str]:
    """Return those in which the newest checkpoint stands, in order; none before the first."""
    kept = [entry.metadata for entry in read_job(root, job).completed if entry.metadata is not None]
    positions = kept[-1].positions if kept else ()
    own = {f"{job}-{held.source.removesuffix('-source')}-repartition": held.split for held in positions}
    return sorted(topic for topic, split in own.items() if input_of(split) == topic)


def own_topics_text(topics: list[str]) -> str:
    """Say to a person which there are, and that nobody deletes them."""
    return (
        f"topics of its own (key_by): {', '.join(topics)}. What no kept checkpoint reads again is deleted; they "
        f"themselves stay, until somebody deletes them when the job is gone: twopc topics delete {' '.join(topics)}"
    )
