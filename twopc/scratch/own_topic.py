"""A topic of the job's own, beside the real one: what is written there stays, so that it can be read again."""

from __future__ import annotations

from collections.abc import Sequence

from twopc.context import JobContext
from twopc.kafka.input.startup_modes import StartingOffsets
from twopc.kafka.repartition import RepartitionSource
from twopc.kafka.source import KafkaSource
from twopc.protocol.facts import SplitPosition


class KeptSource(RepartitionSource):
    """Reads a topic of the job's own from its first record, and deletes nothing there."""

    def forget(self, context: JobContext, kept: Sequence[SplitPosition]) -> None:
        """Keep what was read."""


def kept_source(real: KafkaSource, topic: str, *, group: str | None, servers: str | None) -> KeptSource:
    """Return what reads this topic as a job reads one of its own."""
    return KeptSource(
        topic,
        key=real.key,
        value=real.value,
        group_id=group,
        start=StartingOffsets.earliest(),
        bootstrap_servers=servers,
        properties=real.properties,
    )
