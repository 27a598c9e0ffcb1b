"""The topics that a job has made for itself by `key_by`, as its checkpoints tell of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.table import Table

from twopc.checkpoints.catalog import CheckpointEntry, read_job
from twopc.cli.tables import table
from twopc.kafka.positions.partition_position import PartitionPosition, input_of
from twopc.protocol.ids import CheckpointId
from twopc.repartition import own_name
from twopc.storage.store import CheckpointStore


@dataclass(frozen=True, slots=True)
class OwnTopic:
    """One of them: what it holds, and for which checkpoint that is kept.

    `checkpoint` is the one of those that are kept which has read the least, `label` its name. `offsets` are those from
    there to where the newest stands: what is behind that, the job has not read yet.
    """

    name: str
    topic_id: str
    partitions: int
    offsets: int
    checkpoint: CheckpointId
    label: str


def own_topics(root: CheckpointStore, job: str) -> list[OwnTopic]:
    """Return those in which a checkpoint stands that is kept, in order; none before the first."""
    found: dict[str, list[tuple[CheckpointEntry, list[PartitionPosition]]]] = {}
    for entry in read_job(root, job).completed:
        for name, held in _positions(job, entry).items():
            found.setdefault(name, []).append((entry, held))
    return [_own_topic(name, kept) for name, kept in sorted(found.items())]


def own_topics_table(topics: Sequence[OwnTopic]) -> Table:
    """Show to a person which there are, and why they hold what they hold."""
    heads = ("topic", "partitions", "offsets", "kept for")
    rows = [(each.name, str(each.partitions), f"{each.offsets:,}", _kept_for(each)) for each in topics]
    return table("Topics of the job's own (key_by)", heads, rows)


def own_topics_text(job: str) -> str:
    """Say to a person what becomes of them."""
    return (
        "Of a topic of its own a job deletes what no kept checkpoint would read again. The topic itself stays until "
        f"you delete it, when the job is gone: twopc jobs delete {job} --topics"
    )


def _kept_for(topic: OwnTopic) -> str:
    return f"checkpoint {topic.checkpoint}" + (f" ({topic.label})" if topic.label else "")


def _positions(job: str, entry: CheckpointEntry) -> Mapping[str, list[PartitionPosition]]:
    """Return where a checkpoint stands in each of them."""
    found: dict[str, list[PartitionPosition]] = {}
    for held in () if entry.metadata is None else entry.metadata.positions:
        name = own_name(job, held.source.removesuffix("-source"))
        if input_of(held.split) == name:
            found.setdefault(name, []).append(PartitionPosition.from_split_position(held))
    return found


def _own_topic(name: str, kept: Sequence[tuple[CheckpointEntry, list[PartitionPosition]]]) -> OwnTopic:
    reads = [(sum(held.position for held in positions), entry) for entry, positions in kept]
    least, oldest = min(reads, key=lambda each: each[0])
    now = kept[-1][1]
    return OwnTopic(name, now[0].topic_id, len(now), reads[-1][0] - least, oldest.checkpoint_id, oldest.label)
