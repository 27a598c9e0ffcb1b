"""What a job that has finished must have made of its numbered input: output, keyed state, positions, nothing left open.

The jobs judged here count the records of each key in a state called "count", and emit `<number>:<count>:<who>`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from tests.counting.numbered_input import NumberedInput
from tests.counting.transcript import Transcript
from tests.counting.verifier import Mark, Verifier
from twopc.checkpoints.catalog import read_job
from twopc.protocol.facts import CheckpointMetadata
from twopc.protocol.ids import TopicPartition as Partition
from twopc.state.keyed import KeyedState
from twopc.state.restore import restore_state
from twopc.state.storage import CheckpointStorage
from twopc.testing.topics import Read, read_topic

READ_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Finished:
    """One finished job: it read `<job>-in` and wrote `<job>-out`."""

    bootstrap_servers: str
    checkpoint_dir: Path
    job: str
    source: NumberedInput

    def judge_output(self, cuts: Mapping[int, Iterable[int]] | None = None) -> Transcript:
        """Read the output as a new reader does, from the start; return what it saw."""
        verifier, transcript = Verifier(self.source, lambda read: mark_of(self.source, read)), Transcript()
        for read in read_topic(self.bootstrap_servers, f"{self.job}-out", timeout_s=READ_SECONDS):
            verifier.see(read)
            transcript.note(read)
        findings = [str(finding) for finding in verifier.finish(cuts)]
        assert not findings, findings
        return transcript

    def judge_positions(self) -> None:
        """The last checkpoint and the consumer group must both stand at the end of the input."""
        ends = {partition: self.source.end(partition) for partition in range(self.source.partitions)}
        assert {each.partition: each.position[0] for each in self._newest().positions} == ends
        consumer = Consumer({"bootstrap.servers": self.bootstrap_servers, "group.id": self.job})
        try:
            wanted = [TopicPartition(f"{self.job}-in", each) for each in ends]
            offsets = {item.partition: item.offset for item in consumer.committed(wanted, timeout=READ_SECONDS)}
        finally:
            consumer.close()
        assert offsets == ends, "the group's offsets are not the end of the input"

    def judge_state(self, work: Path) -> None:
        """The last checkpoint's keyed state must be what the input makes."""
        metadata = self._newest()
        storage = CheckpointStorage(self.checkpoint_dir / self.job)
        partitions = [Partition(f"{self.job}-in", number) for number in range(self.source.partitions)]
        keys = [(partitions[self.source.partition_of(lane)], self.source.keys[lane]) for lane in self.source.lanes]
        work.mkdir()
        backend = restore_state(
            storage, metadata.snapshots, list(map(str, partitions)), metadata.snapshots[0].subtask, work
        )
        try:
            state = KeyedState(backend)
            counts = [state.get_many("count", partition, [key])[0] for partition, key in keys]
        finally:
            backend.close()
        assert counts == [b"%d" % self.source.size(lane) for lane in self.source.lanes], "the state is not the input's"

    def _newest(self) -> CheckpointMetadata:
        metadata = read_job(self.checkpoint_dir, self.job).completed[-1].metadata
        assert metadata is not None, "the newest checkpoint is damaged"
        return metadata


def mark_of(source: NumberedInput, read: Read) -> Mark | None:
    """Read an output value: number, running count of its key, who wrote it. None if they don't fit together."""
    lane = source.lane_of(read.key)
    try:
        number, count, writer = (read.value or b"").split(b":")
        place = int(count) - 1
        if lane is None or int(number) != source.number(lane, place):
            return None
        return Mark(lane, place, writer.decode())
    except ValueError:
        return None
