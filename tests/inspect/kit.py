"""A job's checkpoint folder with real state in it: RocksDB snapshots, made without a job."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.stored_job import StoredJob, name_of
from twopc.kafka.positions.partition_position import PartitionPosition
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.protocol.facts import Committable, SubtaskSnapshot
from twopc.protocol.ids import CheckpointId, SubtaskIndex
from twopc.serde import Json, Serde
from twopc.state.key_form import key_bytes
from twopc.state.keyed import KeyedState, OperatorState
from twopc.state.layout import StateName
from twopc.state.positions import write_positions
from twopc.state.rocksdb import RocksDBBackend
from twopc.state.serdes import write_serdes

LEFT, RIGHT = TopicPartition("in", 0), TopicPartition("in", 1)


class JobWithState(StoredJob):
    """Two subtasks, of which each owns some input partitions; what they store is `values`, changed between checkpoints.

    `owners` says which partitions each subtask reads, `own` what an operator keeps for itself in each.
    """

    def __init__(self, root: Path, serdes: Mapping[str, Serde] | None = None) -> None:
        self.values: dict[tuple[TopicPartition, str, bytes], bytes] = {}
        self.owners: dict[int, tuple[TopicPartition, ...]] = {0: (LEFT,), 1: (RIGHT,)}
        self.own: dict[int, bytes] = {}
        self.serdes: Mapping[str, Serde] = {"count": Json()} if serdes is None else serdes
        super().__init__(root)

    def put(self, partition: TopicPartition, key: Any, value: bytes, name: str = "count") -> None:
        self.values[partition, name, key_bytes(key)] = value

    def _snapshot(self, subtask: int, number: CheckpointId) -> SubtaskSnapshot:
        index, mine = SubtaskIndex(subtask), self.owners[subtask]
        positions = tuple(
            PartitionPosition(each, "topic-id", Position(100 * number)).to_split_position() for each in mine
        )
        local = self._local / f"{number}-{subtask}"
        local.mkdir(parents=True)
        backend = RocksDBBackend.open_fresh(local / "db")
        try:
            write_serdes(backend, {StateName.parse(name): serde for name, serde in self.serdes.items()})
            for (partition, name, key), value in self.values.items():
                if partition in mine:
                    KeyedState(backend).put_many(StateName.parse(name), partition.partition, [key], [value])
            if subtask in self.own:
                OperatorState(backend).put("own", self.own[subtask])
            write_positions(backend, positions)
            backend.snapshot(local / "snapshot")
        finally:
            backend.close()
        return SubtaskSnapshot.of(
            subtask=index,
            positions=positions,
            state=self._storage.put(number, index, local / "snapshot", key_count=len(self.values)),
            committables=(Committable(name_of(subtask, number), number, index, {"producer_id": 7}),),
        )
