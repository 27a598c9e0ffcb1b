"""The checks of an outsider after a soak: output, state, positions, transactions, processes, files."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from tests.soak.ends import Reader
from tests.soak.stage import PARALLELISM, VARIABLE, Processes
from twopc.checkpoints import read_job
from twopc.kafka.committable import PreparedTransaction
from twopc.protocol.facts import CheckpointMetadata, decode_fact
from twopc.protocol.ids import TopicPartition as Partition
from twopc.protocol.ledger_facts import METADATA_KIND
from twopc.state.keyed import KeyedState
from twopc.state.restore import restore_state
from twopc.state.storage import CheckpointStorage
from twopc.testing.lanes import NumberedInput
from twopc.testing.outsider import Place, report, wait_until_clean
from twopc.testing.topics import read_topic


class Aftermath:
    """Collects, while the soak runs, where transactions ended; judges everything when it is over."""

    def __init__(self, processes: Processes, source: NumberedInput, folder: Path) -> None:
        self._processes = processes
        self._source = source
        self._folder = folder
        self._known: set[str] = set()
        self._cuts: dict[int, set[int]] = defaultdict(set)

    def note_checkpoints(self) -> None:
        """Read what checkpoints are there now: old ones are deleted."""
        job_folder = self._processes.checkpoint_dir / self._processes.job
        for folder in job_folder.glob("chk-*"):
            if folder.name in self._known:
                continue
            try:
                body = decode_fact(METADATA_KIND, (folder / "metadata.json").read_bytes(), folder.name)
            except FileNotFoundError:
                continue
            self._known.add(folder.name)
            metadata = CheckpointMetadata.from_json(body)
            prepared = [PreparedTransaction.from_committable(each) for each in metadata.committables]
            for position in (*metadata.positions, *(each for one in prepared for each in one.positions)):
                self._cuts[position.partition.partition].add(position.position)

    def judge(self, reader: Reader) -> None:
        """Compare all that is left with what the input says it must be."""
        self._processes.end_coordinator()
        self._judge_leftovers()
        self._judge_output(reader)
        self._judge_state_and_positions()

    def _judge_output(self, reader: Reader) -> None:
        assert self._cuts, "no checkpoint was seen"
        findings = [str(finding) for finding in reader.verifier.finish(self._cuts)]
        assert not findings, findings
        servers, topic = self._processes.broker.bootstrap_servers, f"{self._processes.job}-out"
        again = Reader(servers, topic, 0, self._source)
        for read in read_topic(servers, topic, timeout_s=60):
            again.verifier.see(read)
            again.transcript.note(read)
        findings = [str(finding) for finding in again.verifier.finish(self._cuts)]
        assert not findings, f"a second reader: {findings}"
        assert not reader.transcript.differences(again.transcript), "two readers saw different records"

    def _judge_leftovers(self) -> None:
        """No open transaction, nothing hidden, no process, lock, work folder or half-written file."""
        processes = self._processes
        place = Place(
            job=processes.job,
            bootstrap_servers=processes.broker.bootstrap_servers,
            topics=(f"{processes.job}-out",),
            checkpoint_dir=processes.checkpoint_dir,
            marker=(VARIABLE, processes.job),
            temporary=processes.temporary,
            empty=(processes.temporary,),
        )
        findings = wait_until_clean(place)
        assert not findings, report(findings)
        job_folder = processes.checkpoint_dir / processes.job
        kept = {entry.folder.name for entry in read_job(processes.checkpoint_dir, processes.job).completed}
        assert {path.parent.name for path in job_folder.glob("chk-*/metadata.json")} == kept

    def _judge_state_and_positions(self) -> None:
        checkpoint_dir, job, source = self._processes.checkpoint_dir, self._processes.job, self._source
        storage = CheckpointStorage(checkpoint_dir / job)
        metadata = read_job(checkpoint_dir, job).completed[-1].metadata
        assert metadata is not None, "the newest checkpoint is damaged"
        ends = {partition: source.end(partition) for partition in range(source.partitions)}
        assert {each.partition.partition: each.position for each in metadata.positions} == ends
        assert self._group_offsets() == ends, "the group's offsets are not the end of the input"
        partitions = [Partition(f"{job}-in", number) for number in range(source.partitions)]
        for subtask in range(PARALLELISM):
            work = self._folder / f"restored-{subtask}"
            work.mkdir()
            owner = metadata.snapshots[subtask].subtask
            backend = restore_state(storage, metadata.snapshots, partitions, owner, work)
            try:
                keys = [(partitions[source.partition_of(lane)], source.keys[lane]) for lane in source.lanes]
                counts = KeyedState(backend).get_many("count", keys)
            finally:
                backend.close()
            assert counts == [b"%d" % source.size(lane) for lane in source.lanes], "the state disagrees with the input"

    def _group_offsets(self) -> dict[int, int]:
        consumer = Consumer(
            {"bootstrap.servers": self._processes.broker.bootstrap_servers, "group.id": self._processes.job}
        )
        try:
            wanted = [TopicPartition(f"{self._processes.job}-in", each) for each in range(self._source.partitions)]
            return {item.partition: item.offset for item in consumer.committed(wanted, timeout=10)}
        finally:
            consumer.close()
