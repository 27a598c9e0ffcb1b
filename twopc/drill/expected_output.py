"""The expected output of a range of the input, computed in this process: by the job's steps, on the restored state.

Nothing of checkpoints, transactions or subtasks takes part, so it can be held against what a run of those wrote.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType

from twopc.graph import JobDefinition
from twopc.kafka.clients.cluster import Cluster
from twopc.kafka.connectors import KafkaConnectors
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.protocol.facts import CheckpointMetadata
from twopc.protocol.ids import SubtaskIndex
from twopc.sink import Sink
from twopc.state.backend import Family
from twopc.state.keyed import KeyedState
from twopc.state.layout import ELEMENTS
from twopc.state.restore import restore_state
from twopc.state.schema_check import drop_undeclared
from twopc.state.serdes import check_serdes, read_by_entry, read_serdes
from twopc.state.snapshot_store import SnapshotStore
from twopc.state.whole_states import KeyState, whole_states
from twopc.storage.local import LocalStore
from twopc.verify.input_order import groups_of, read_group
from twopc.verify.paths import Paths
from twopc.verify.replay import Replay, ReplayedRecord


class ExpectedOutput:
    """Holds the state of all subtasks together: that of a checkpoint, or none; `records` is how many it has read.

    To be opened before a run prunes what it is restored from.
    """

    def __init__(
        self,
        definition: JobDefinition,
        metadata: CheckpointMetadata | None,
        job_folder: Path,
        work: Path,
        max_time_ahead_ms: int,
    ) -> None:
        self._definition, self._max_time_ahead_ms = definition, max_time_ahead_ms
        self._paths = Paths.of(definition).to(definition.sinks)
        self.records = 0
        snapshots = () if metadata is None else metadata.snapshots
        numbers = frozenset() if metadata is None else frozenset(held.partition for held in metadata.positions)
        self._backend = restore_state(SnapshotStore(LocalStore(job_folder)), snapshots, numbers, SubtaskIndex(0), work)

    def __enter__(self) -> ExpectedOutput:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._backend.close()

    def declare(self, dropped: Collection[str]) -> Sequence[str]:
        """Leave these states behind; return those that the job declares and the checkpoint does not have.

        Raises ConfigurationError as a run does: for other states that the job no longer declares, or another serde.
        """
        declared = self._definition.state_serdes
        new = sorted(map(str, declared.keys() - read_serdes(self._backend).keys()))
        drop_undeclared(self._backend, declared, dropped)
        check_serdes(self._backend, declared)
        return new

    def keyed(self) -> dict[KeyState, bytes]:
        """Return the state by key as it is now, of all operators whose state can be worked out.

        The numbers of a list's elements are none of it: they tell only which came first. Nor are the times of what goes
        to topics of the job's own: those decide which marks stand there, and the topic is judged as it stands.
        """
        known = {node.operator for node in self._paths.nodes if not isinstance(node.operation, Sink)}
        every = whole_states(self._backend.scan(Family.KEYED, b""), read_by_entry(self._backend))
        return {at: raw for at, raw in every if at.state.operator in known and at.state.name != ELEMENTS}

    def compute(
        self,
        clusters: Mapping[str, Cluster],
        starts: Mapping[TopicPartition, Position],
        ends: Mapping[TopicPartition, Position],
    ) -> Iterator[ReplayedRecord]:
        """Yield what the input makes from each start up to each end. Once only. `clusters` are those of the sources.

        Each input partition comes in its order.
        """
        paths = self._paths
        store = KeyedState(self._backend)
        with Replay(paths, store, max_time_ahead_ms=self._max_time_ahead_ms) as replay:
            sources = KafkaConnectors.of(self._definition).sources
            for group in groups_of(paths, sources):
                ranges = {
                    name: {
                        partition: (starts[partition], max(end, starts[partition]))
                        for partition, end in sorted(ends.items())
                        if partition.topic in sources[name].topics
                    }
                    for name in group
                }
                read = {name: sources[name] for name in group}
                for turn in read_group(paths, read, clusters, ranges, together=replay.takes_several):
                    self.records += turn.size
                    if some := turn.only(paths.sources):
                        yield from replay.make(some)
            replay.write_back()
