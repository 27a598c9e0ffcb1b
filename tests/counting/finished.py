"""The one judge of a finished job that counted a numbered input: output, keyed state, positions.

The jobs judged here count the records of each key in a state called "count", and emit `<number>:<count>`, with `:<who>`
behind it where a job says which process wrote it. Every check yields what is wrong, in words; nothing asks the code
under test but to read its own files back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.counting.numbered_input import NumberedInput
from tests.counting.transcript import Transcript
from tests.counting.verifier import Mark, Verifier
from twopc.checkpoints.catalog import read_job
from twopc.kafka.positions.partition_position import offsets_of
from twopc.protocol.facts import CheckpointMetadata
from twopc.state.keyed import KeyedState
from twopc.state.layout import StateName
from twopc.state.restore import restore_state
from twopc.state.snapshot_store import SnapshotStore
from twopc.storage.local import LocalStore
from twopc.testing.topics import Read, read_topic

READ_SECONDS = 120.0
_ANSWER_SECONDS = 20.0
_QUESTIONS = 4


@dataclass(frozen=True, slots=True)
class FinishedJob:
    """One finished job, and the numbered records that its input holds. State is restored below `work`."""

    bootstrap_servers: str
    checkpoint_dir: Path
    job: str
    input: str
    output: str
    source: NumberedInput
    work: Path

    def judge_output(
        self, cuts: Mapping[int, Iterable[int]] | None = None, seen: Transcript | None = None
    ) -> Iterator[str]:
        """Each record once, in the order of its key and of its input partition; two readers see the same.

        `cuts` is where transactions ended; `seen` is what another reader saw, who reads now where none did before.
        """
        verifier, transcript, order = Verifier(self.source, self._mark), Transcript(), _Order(self.source)
        disorder: list[str] = []
        for read in self._read():
            verifier.see(read)
            transcript.note(read)
            disorder += order.late(read)
        yield from map(str, verifier.finish(cuts))
        yield from disorder[:1]
        for difference in transcript.differences(self._transcript() if seen is None else seen):
            yield f"two readers do not agree on what stands at which offset: {difference}"

    def judge_state(self) -> Iterator[str]:
        """The state that every subtask would restore is what the input makes."""
        metadata = self._kept()[-1]
        storage = SnapshotStore(LocalStore(self.checkpoint_dir / self.job))
        source = self.source
        wanted = [b"%d" % source.size(lane) for lane in source.lanes]
        count, numbers = StateName.parse("count"), range(source.partitions)
        self.work.mkdir(exist_ok=True)
        for snapshot in metadata.snapshots:
            folder = self.work / f"subtask-{snapshot.subtask}"
            backend = restore_state(storage, metadata.snapshots, numbers, snapshot.subtask, folder)
            try:
                state = KeyedState(backend)
                counts = [
                    state.get_many(count, source.partition_of(lane), [source.keys[lane]])[0] for lane in source.lanes
                ]
            finally:
                backend.close()
            if counts != wanted:
                yield f"subtask {snapshot.subtask}: the keyed state {counts} is not what the input makes, {wanted}"

    def judge_positions(self) -> Iterator[str]:
        """The last checkpoint and the consumer group stand at the end of the input."""
        ends = {partition: self.source.end(partition) for partition in range(self.source.partitions)}
        if (last := self._positions()[-1]) != ends:
            yield f"the last checkpoint stands at {last}, the input ends at {ends}"
        if (witnessed := self._witnessed()) != ends:
            yield f"the group stands at {witnessed}, the input ends at {ends}"

    def judge_history(self) -> Iterator[str]:
        """No checkpoint that is kept stands before an earlier one."""
        for earlier, later in pairwise(self._positions()):
            if any(later[partition] < position for partition, position in earlier.items()):
                yield f"positions went back from {earlier} to {later}"

    def _read(self) -> list[Read]:
        return read_topic(self.bootstrap_servers, self.output, timeout_s=READ_SECONDS)

    def _mark(self, read: Read) -> Mark | None:
        return mark_of(self.source, read)

    def _transcript(self) -> Transcript:
        transcript = Transcript()
        for read in self._read():
            transcript.note(read)
        return transcript

    def _kept(self) -> list[CheckpointMetadata]:
        kept = [entry.metadata for entry in read_job(LocalStore(self.checkpoint_dir), self.job).completed]
        assert kept, "no checkpoint is kept"
        assert kept[-1] is not None, "the newest checkpoint is damaged"
        return [metadata for metadata in kept if metadata is not None]

    def _positions(self) -> list[dict[int, int]]:
        held = [offsets_of(metadata.positions) for metadata in self._kept()]
        return [
            {partition.partition: offset for partition, offset in each.items() if partition.topic == self.input}
            for each in held
        ]

    def _witnessed(self) -> dict[int, int]:
        """Where the group stands.

        Each question is a new consumer's: one that asked while the broker came back was seen to wait for a minute.
        """
        for _ in range(_QUESTIONS - 1):
            with suppress(KafkaException):
                return self._committed()
        return self._committed()

    def _committed(self) -> dict[int, int]:
        consumer = Consumer({"bootstrap.servers": self.bootstrap_servers, "group.id": self.job})
        try:
            asked = [TopicPartition(self.input, number) for number in range(self.source.partitions)]
            return {item.partition: item.offset for item in consumer.committed(asked, timeout=_ANSWER_SECONDS)}
        finally:
            consumer.close()


class _Order:
    """A partition of the output may mix input partitions, but keeps the order of each."""

    def __init__(self, source: NumberedInput) -> None:
        self._source = source
        self._last: dict[tuple[int, int], int] = {}

    def late(self, read: Read) -> Iterator[str]:
        """Yield what is wrong with the place of the next record of an output partition."""
        mark = mark_of(self._source, read)
        if mark is None:
            return
        number = self._source.number(mark.lane, mark.place)
        partition = self._source.partition_of(mark.lane)
        before = self._last.get((read.partition, partition), -1)
        if number < before:
            yield f"output partition {read.partition}: {number} of input partition {partition} is late, after {before}"
        self._last[read.partition, partition] = number


def mark_of(source: NumberedInput, read: Read) -> Mark | None:
    """Read an output value: number, running count of its key, perhaps its writer. None if they don't fit together."""
    lane = source.lane_of(read.key)
    try:
        number, count, *writer = (read.value or b"").split(b":", 2)
        place = int(count) - 1
        if lane is None or int(number) != source.number(lane, place):
            return None
        return Mark(lane, place, b"".join(writer).decode())
    except ValueError:
        return None
