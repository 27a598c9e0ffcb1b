"""The scratch run of a restore drill, and the judgement of what it wrote, and of what the job really wrote."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from twopc.config import RunSettings
from twopc.drill.broker import Cluster
from twopc.drill.comparing import check_of, judged
from twopc.drill.expected import Reckoner
from twopc.drill.midway import PATIENCE_SECONDS, Interruption, middles
from twopc.drill.reach import Reach
from twopc.drill.real_output import OUTPUT, RealOutput
from twopc.drill.scratch import Names, parts_of, write_job_file
from twopc.drill.timeline import RecoveryClock, Timeline
from twopc.drill.verdict import Check, Verdict
from twopc.driver.run import run as run_job
from twopc.errors import CheckpointCorrupted, Fenced, ProtocolViolation, TransactionLost, Unavailable, UserCodeError
from twopc.graph import JobDefinition
from twopc.kafka.preflight import bootstrap_servers_of
from twopc.loader.job_loader import load_job
from twopc.protocol.facts import CheckpointMetadata
from twopc.protocol.job_events import JobEvent
from twopc.verify.history import Expected
from twopc.verify.holes import compaction, holes_in
from twopc.verify.transactions import scan

REPLAY = "replay"

_OF_THE_JOB = (CheckpointCorrupted, Fenced, ProtocolViolation, TransactionLost, UserCodeError)
"""Errors that say something about job or checkpoint; any other means that the drill could not run."""


_NO_KILL = f"no checkpoint completed in {PATIENCE_SECONDS:.0f} s while it stood still in the middle"
_AFTER_KILL = (
    "every process was killed once, in the middle: a function that keeps something outside its state does not get it "
    "back (--no-interrupt replays without the kill)"
)


@dataclass(frozen=True, slots=True)
class _Replayed:
    """What should have been written where, of how many records, and how the run was interrupted."""

    expected: list[tuple[str, Expected]]
    records: int
    interruption: Interruption | None


@dataclass(frozen=True, slots=True)
class Replay:
    """Everything that a replay works with. `folder` is all that is scratch; `interrupt`: it is killed in the middle."""

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
    interrupt: bool = True

    def play(self, figures: dict[str, float | None]) -> Iterator[Check]:
        """Run, yield the checks, and leave no scratch name on the brokers; add to the figures."""
        names = Names.fresh()
        with self._scratch(names):
            try:
                replayed = self._run(names, figures)
            except _OF_THE_JOB as error:
                yield Check(REPLAY, Verdict.BROKEN, "the replay failed", (f"{type(error).__name__}: {error}",))
                return
            self.tell("comparing the output")
            yield self._judge_replay(names, replayed)
            if compacted := self._compacted(replayed.records):
                yield Check.not_judged(OUTPUT, f"{compacted}: what the job made of them can't be worked out any more")
                return
            _, sink = parts_of(self.definition)
            real = RealOutput(self.sink, self.metadata, self.reach, sink.delivery_guarantee)
            yield real.judge(replayed.expected, figures)

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

    def _run(self, names: Names, figures: dict[str, float | None]) -> _Replayed:
        """Run the job on the copy, and work out what it should have written."""
        job_folder = Path(self.settings.checkpoint_dir) / self.metadata.job
        with Reckoner(self.definition, self.metadata, job_folder, self.folder / "reckoner") as reckoner:
            self.tell(f"restoring checkpoint {self.metadata.checkpoint_id} and replaying")
            interruption = self._run_job(names, figures)
            self.tell("working out what the output must be")
            source, _ = parts_of(self.definition)
            servers = bootstrap_servers_of(source.bootstrap_servers, self.settings)
            expected = list(reckoner.reckon(servers, self.reach.starts, self.reach.ends))
            figures["records replayed"] = float(reckoner.records)
            return _Replayed(expected, reckoner.records, interruption)

    def _run_job(self, names: Names, figures: dict[str, float | None]) -> Interruption | None:
        """Run, and return how it was interrupted; None if it was not to be, or there is no middle."""
        stops = middles(self.reach.starts, self.reach.ends) if self.interrupt and self.reach.to_replay > 1 else {}
        job_file = write_job_file(self.folder, self.job_file, names, self.reach.ends, stops)
        interruption = Interruption(self.folder, self.settings.parallelism) if stops else None
        settings = replace(self.settings, restore_from=str(self.metadata.checkpoint_id))
        if interruption is not None:
            settings = replace(settings, restart_strategy="fixed-delay", restart_attempts=1)
        clock = RecoveryClock(time.time(), self.settings.parallelism)
        struck = threading.Event()

        def note(event: JobEvent) -> None:
            self.timeline.note(event)
            if interruption is None or not struck.is_set():
                clock.note(event)
            if interruption is not None:
                interruption.note(event)
                if interruption.struck_at is not None and not struck.is_set():
                    struck.set()
                    self.tell("every process of the replay was killed, in the middle")
            if self.on_event is not None:
                self.on_event(event)

        report = run_job(load_job(job_file), settings, on_event=note, job_file=job_file)
        if report.stopped:
            raise KeyboardInterrupt
        figures |= {"restored after, s": clock.restored, "first record after, s": clock.first_record}
        if interruption is None or interruption.clock is None:
            figures["caught up after (RTO), s"] = clock.caught_up
        else:
            figures["restored after the kill, s"] = interruption.clock.restored
            figures["caught up after (RTO), s"] = interruption.caught_up(clock)
            if clock.first_record is None and interruption.stood_at is not None:
                # The kill came before the next report.
                figures["first record after, s"] = interruption.stood_at - clock.began
        return interruption

    def _judge_replay(self, names: Names, replayed: _Replayed) -> Check:
        """Hold what the restored run wrote against what the input makes."""
        ranges = self.sink.ranges(self.sink.control.topics([names.output]))
        verdict = judged(
            names.output, [each for _, each in replayed.expected], self.sink.see(ranges, self.sink.whose(ranges))
        )
        held = f"{replayed.records:,} records replayed, {verdict.matched:,} written, each exactly once"
        interruption = replayed.interruption
        if interruption is None:
            return check_of(REPLAY, verdict, f"{held}; it was not interrupted")
        if interruption.struck_at is None:
            check = check_of(REPLAY, verdict, f"{held}; but it was not interrupted: {_NO_KILL}")
            return check if check.verdict is Verdict.BROKEN else replace(check, verdict=Verdict.MISSED)
        check = check_of(REPLAY, verdict, f"{held}, though every process was killed in the middle")
        if check.verdict is Verdict.BROKEN:
            check = replace(check, said=f"{check.said}; {_AFTER_KILL}")
        return check

    def _compacted(self, records: int) -> str | None:
        """Say what of the input was compacted away since the checkpoint."""
        if records >= self.reach.to_replay:
            return None
        fetch = self.source.control.fetch
        empty = {
            each: holes_in(start, scan(partial(fetch, each), start, self.reach.ends[each]))
            for each, start in self.reach.starts.items()
        }
        return compaction("input", empty)
