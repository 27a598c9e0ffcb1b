"""The scratch run of a restore drill, and the judgement of what it wrote, and of what the job really wrote."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from twopc.config import RunSettings
from twopc.drill.broker import Cluster
from twopc.drill.comparing import check_of, judged
from twopc.drill.expected import Reckoner
from twopc.drill.reach import Reach
from twopc.drill.real_output import RealOutput
from twopc.drill.scratch import Names, parts_of, write_job_file
from twopc.drill.timeline import RecoveryClock, Timeline
from twopc.drill.verdict import Check, Verdict
from twopc.driver.run import run as run_job
from twopc.errors import CheckpointCorrupted, Fenced, ProtocolViolation, TransactionLost, Unavailable, UserCodeError
from twopc.job import JobDefinition
from twopc.kafka.preflight import bootstrap_servers_of
from twopc.loading import load_job
from twopc.protocol.facts import CheckpointMetadata
from twopc.protocol.job_events import JobEvent
from twopc.verify.history import Expected

REPLAY = "replay"

_OF_THE_JOB = (CheckpointCorrupted, Fenced, ProtocolViolation, TransactionLost, UserCodeError)
"""Errors that say something about job or checkpoint; any other means that the drill could not run."""


@dataclass(frozen=True, slots=True)
class Replay:
    """Everything that a replay works with. `copies` is the scratch checkpoint folder, `folder` all that is scratch."""

    definition: JobDefinition
    job_file: str
    metadata: CheckpointMetadata
    reach: Reach
    settings: RunSettings
    folder: Path
    source: Cluster
    sink: Cluster
    timeline: Timeline
    tell: Callable[[str], None]
    on_event: Callable[[JobEvent], None] | None

    def play(self, figures: dict[str, float | None]) -> Iterator[Check]:
        """Run, yield the checks, and leave no scratch name on the brokers; add to the figures."""
        names = Names.fresh()
        with self._scratch(names):
            try:
                expected, records = self._run(names, figures)
            except _OF_THE_JOB as error:
                yield Check(REPLAY, Verdict.BROKEN, "the replay failed", (f"{type(error).__name__}: {error}",))
                return
            self.tell("comparing the output")
            yield self._judge_replay(names, [each for _, each in expected], records)
            _, sink = parts_of(self.definition)
            real = RealOutput(self.sink, self.metadata, self.reach, sink.delivery_guarantee)
            yield real.judge(expected, figures)

    @contextmanager
    def _scratch(self, names: Names) -> Iterator[None]:
        """Have the scratch names on the brokers, and nothing of them afterwards."""
        try:
            self.sink.create_topic(names.output, self.reach.partitions())
            yield
        finally:
            self.tell("deleting what the drill has made")
            with suppress(Unavailable):
                self.source.delete_group(names.group)
            try:
                self.sink.delete_topic(names.output)
            except Unavailable as error:
                self.tell(f"topic {names.output} is left behind: {error}")

    def _run(self, names: Names, figures: dict[str, float | None]) -> tuple[list[tuple[str, Expected]], int]:
        """Run the job on the copy; return what it should have written where, and how many records it read."""
        job_folder = Path(self.settings.checkpoint_dir) / self.metadata.job
        with Reckoner(self.definition, self.metadata, job_folder, self.folder / "reckoner") as reckoner:
            self.tell(f"restoring checkpoint {self.metadata.checkpoint_id} and replaying")
            records = self._run_job(names, figures)
            self.tell("working out what the output must be")
            source, _ = parts_of(self.definition)
            servers = bootstrap_servers_of(source.bootstrap_servers, self.settings)
            return list(reckoner.reckon(servers, self.reach.starts, self.reach.ends)), records

    def _run_job(self, names: Names, figures: dict[str, float | None]) -> int:
        job_file = write_job_file(self.folder, self.job_file, names, self.reach.ends)
        clock = RecoveryClock(time.time(), self.settings.parallelism)

        def note(event: JobEvent) -> None:
            clock.note(event)
            self.timeline.note(event)
            if self.on_event is not None:
                self.on_event(event)

        settings = replace(self.settings, restore_from=str(self.metadata.checkpoint_id))
        report = run_job(load_job(job_file), settings, on_event=note, job_file=job_file)
        if report.stopped:
            raise KeyboardInterrupt
        figures |= {
            "restored after, s": clock.restored,
            "first record after, s": clock.first_record,
            "caught up after (RTO), s": clock.caught_up,
            "records replayed": float(report.records_in),
        }
        return report.records_in

    def _judge_replay(self, names: Names, expected: list[Expected], records: int) -> Check:
        """Hold what the restored run wrote against what the input makes."""
        ranges = self.sink.ranges(self.sink.control.topics([names.output]))
        verdict = judged(names.output, expected, self.sink.see(ranges, self.sink.whose(ranges)))
        return check_of(
            REPLAY, verdict, f"{records:,} records replayed, {verdict.matched:,} written, each exactly once"
        )
