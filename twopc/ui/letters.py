"""The dead letters of a job's topics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from twopc.config import RunSettings
from twopc.graph import JobDefinition
from twopc.kafka.clients.cluster import Cluster
from twopc.kafka.dead_letter import DeadLetterSink
from twopc.kafka.input.letters import newest_of, read_letters, read_marks, row_of_letter, tail
from twopc.kafka.input.topic_reader import whole
from twopc.kafka.topics.preflight import bootstrap_servers_of
from twopc.ui.timeline import Row

SHOWN = 50
"""The letters that are shown of a topic."""

TAIL = 500
"""How many places of each partition are looked at for them: marks and transactions take some."""


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """The topics of dead letters by name, each on its cluster."""

    clusters: Mapping[str, Cluster]

    @classmethod
    def of(cls, definition: JobDefinition, settings: RunSettings) -> DeadLetters:
        """Return those of a job."""
        sinks = [definition.sinks[each] for each in definition.dead_letters]
        return cls(
            {
                sink.topic: Cluster(bootstrap_servers_of(sink.bootstrap_servers, settings), sink.properties)
                for sink in sinks
                if isinstance(sink, DeadLetterSink) and isinstance(sink.topic, str)
            }
        )

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.clusters)

    def newest(self, topic: str) -> list[Row]:
        """Return the newest of a topic, newest first; raise a TwoPhaseCommitError if its brokers don't answer."""
        cluster = self.clusters[topic]
        ranges = tail(whole(cluster, [topic]), TAIL)
        found = newest_of(read_letters(cluster, ranges), SHOWN)
        # A mark stands behind its letter, in the same partition.
        marks = read_marks(cluster, ranges)
        return [row_of_letter(each, each.place in marks) for each in reversed(found)]
