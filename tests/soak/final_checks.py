"""The checks after a soak: both readers, state and positions, and what an outsider finds."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from tests.counting.finished import FinishedJob
from tests.counting.numbered_input import NumberedInput
from tests.leak_audit import Place, report, wait_until_clean
from tests.soak.feed_and_reader import Reader
from tests.soak.processes import VARIABLE, Processes
from twopc.checkpoints.catalog import read_job
from twopc.kafka.positions.partition_position import partition_positions
from twopc.kafka.transactions.committable import PreparedTransaction
from twopc.protocol.codec import from_json
from twopc.protocol.envelope import decode_fact
from twopc.protocol.facts import CheckpointMetadata
from twopc.protocol.layout import checkpoint_folder
from twopc.protocol.ledger_facts import METADATA_KIND
from twopc.storage.local import LocalStore


class FinalChecks:
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
            metadata = from_json(CheckpointMetadata, body)
            prepared = [PreparedTransaction.from_committable(each) for each in metadata.committables]
            held = partition_positions(metadata.positions)
            for position in (*held, *(each for one in prepared for each in one.positions)):
                self._cuts[position.partition.partition].add(position.position)

    def judge(self, reader: Reader) -> None:
        """Compare all that is left with what the input says it must be."""
        self._processes.end_coordinator()
        self._judge_leftovers()
        assert self._cuts, "no checkpoint was seen"
        findings = [str(finding) for finding in reader.verifier.finish(self._cuts)]
        assert not findings, findings
        processes = self._processes
        job, work = processes.job, self._folder / "restored"
        finished = FinishedJob(
            processes.broker.bootstrap_servers,
            processes.checkpoint_dir,
            job,
            f"{job}-in",
            f"{job}-out",
            self._source,
            work,
        )
        wrong = [*finished.judge_output(self._cuts, reader.transcript)]
        wrong += [*finished.judge_positions(), *finished.judge_state(), *finished.judge_history()]
        assert wrong == []

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
        completed = read_job(LocalStore(processes.checkpoint_dir), processes.job).completed
        kept = {checkpoint_folder(entry.checkpoint_id) for entry in completed}
        assert {path.parent.name for path in job_folder.glob("chk-*/metadata.json")} == kept
