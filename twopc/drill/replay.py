"""The scratch run of a restore drill, and the judgement of what it wrote, and of what the job really wrote."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from twopc import events
from twopc.config import RunSettings
from twopc.drill.bounds import prepared_of
from twopc.drill.broker import create_scratch_topic, delete_scratch_group, delete_scratch_topic
from twopc.drill.comparing import TopicVerdict, check_of
from twopc.drill.expected import Reckoner
from twopc.drill.job import DrillJob
from twopc.drill.midway import PATIENCE_SECONDS, Interruption, middles
from twopc.drill.reach import Reach
from twopc.drill.real_output import OUTPUT, OutputTopic, RealOutput
from twopc.drill.scratch import Names, write_job_file
from twopc.drill.timeline import RecoveryClock, Timeline
from twopc.drill.verdict import Check, CheckVerdict
from twopc.driver.run import run as run_job
from twopc.errors import CheckpointCorrupted, Fenced, ProtocolViolation, TransactionLost, Unavailable, UserCodeError
from twopc.kafka.topic_partition import TopicPartition
from twopc.kafka.topic_reader import whole
from twopc.loader.job_loader import load_job
from twopc.protocol.facts import CheckpointMetadata
from twopc.verify.findings import Verdict
from twopc.verify.holes import compaction
from twopc.verify.judge import verdict_on
from twopc.verify.replay import Made
from twopc.verify.transaction_lookup import TopicLog

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

    expected: list[Made]
    records: int
    interruption: Interruption | None


@dataclass(frozen=True, slots=True)
class Replay:
    """Everything that a replay works with. `folder` is all that is scratch; `interrupt`: it is killed in the middle."""

    job: DrillJob
    job_file: str
    metadata: CheckpointMetadata
    reach: Reach
    settings: RunSettings
    folder: Path
    timeline: Timeline
    tell: Callable[[str], None]
    on_event: Callable[[events.Event], None] | None
    interrupt: bool = True

    def play(self, figures: dict[str, float | None]) -> Iterator[Check]:
        """Run, yield the checks, and leave no scratch name on the brokers; add to the figures."""
        names = Names.fresh()
        with self._scratch(names):
            try:
                replayed = self._run(names, figures)
            except _OF_THE_JOB as error:
                yield Check(REPLAY, CheckVerdict.BROKEN, "the replay failed", (f"{type(error).__name__}: {error}",))
                return
            self.tell("comparing the output")
            yield self._judge_replay(names, replayed)
            if compacted := self._compacted(replayed.records):
                yield Check.not_judged(OUTPUT, f"{compacted}: what the job made of them can't be worked out any more")
                return
            if not any(map(self.job.is_judged, self.job.ends.sinks)):
                yield Check.not_judged(OUTPUT, "; ".join(self.job.left_out))
                return
            real = RealOutput(self._topics(), self.metadata, self.reach)
            yield real.judge(((each.topic, each.expected) for each in replayed.expected), figures)

    def _topics(self) -> dict[str, OutputTopic]:
        """The topics of the real output that are judged, by name."""
        topics: dict[str, OutputTopic] = {}
        for topic in {each.topic for each in self.reach.written}:
            cluster = self.job.outputs[self._writer(topic)]
            own = [item for item in self.metadata.committables if self.job.cluster_of(item).servers == cluster.servers]
            topics[topic] = OutputTopic(TopicLog(cluster), self.job.guarantee(topic), prepared_of(own))
        return topics

    def _writer(self, topic: str) -> str:
        """Return a sink of the topic's cluster: one that has this topic, else one that chooses."""
        return min(self.job.writers(topic), key=lambda sink: topic not in self.job.ends.sinks[sink].outputs)

    @contextmanager
    def _scratch(self, names: Names) -> Iterator[None]:
        """Have the scratch names on the brokers, and nothing of them afterwards."""
        outputs = self._outputs(names)
        try:
            for topic, sinks in outputs.items():
                real = [name for sink in sinks for name in self.job.ends.sinks[sink].outputs]
                create_scratch_topic(self.job.outputs[sinks[0]], topic, self.reach.partitions(real))
            yield
        finally:
            self.tell("deleting what the drill has made")
            for cluster in self.job.inputs.values():
                with suppress(Unavailable):
                    delete_scratch_group(cluster, names.group)
            for topic, sinks in outputs.items():
                try:
                    delete_scratch_topic(self.job.outputs[sinks[0]], topic)
                except Unavailable as error:
                    self.tell(f"topic {topic} is left behind: {error}")

    def _outputs(self, names: Names) -> dict[str, list[str]]:
        """The scratch topics, each with the sinks that write to it."""
        outputs: dict[str, list[str]] = {}
        for sink, topic in names.outputs(self.job.ends).items():
            outputs.setdefault(topic, []).append(sink)
        return outputs

    def _run(self, names: Names, figures: dict[str, float | None]) -> _Replayed:
        """Run the job on the copy, and work out what it should have written."""
        job_folder = Path(self.settings.checkpoint_dir) / self.metadata.job
        with Reckoner(self.job.definition, self.metadata, job_folder, self.folder / "reckoner") as reckoner:
            self.tell(f"restoring checkpoint {self.metadata.checkpoint_id} and replaying")
            interruption = self._run_job(names, figures)
            self.tell("working out what the output must be")
            expected = list(reckoner.reckon(self.job.inputs, self.reach.starts, self.reach.ends))
            figures["records replayed"] = float(reckoner.records)
            return _Replayed(expected, reckoner.records, interruption)

    def _run_job(self, names: Names, figures: dict[str, float | None]) -> Interruption | None:
        """Run, and return how it was interrupted; None if it was not to be, or there is no middle."""
        stops = middles(self.reach.starts, self.reach.ends) if self.interrupt and self.reach.to_replay > 1 else {}
        job_file = write_job_file(self.folder, self.job_file, names, self.reach.ends, stops)
        sources = len(self.job.ends.sources)
        interruption = Interruption(self.folder, self.settings.parallelism, sources) if stops else None
        settings = replace(self.settings, restore_from=str(self.metadata.checkpoint_id))
        if interruption is not None:
            settings = replace(settings, restart_strategy="fixed-delay", restart_attempts=1)
        clock = RecoveryClock(time.time(), self.settings.parallelism)
        struck = threading.Event()

        def note(event: events.Event) -> None:
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
        left_out = "; ".join(self.job.left_out)
        outputs = {topic: sinks for topic, sinks in self._outputs(names).items() if all(map(self.job.is_judged, sinks))}
        if not outputs:
            return Check.not_judged(REPLAY, left_out)
        verdicts = [TopicVerdict(self._verdict(topic, sinks, replayed)) for topic, sinks in outputs.items()]
        matched = sum(each.verdict.matched for each in verdicts)
        held = f"{replayed.records:,} records replayed, {matched:,} written, each exactly once"
        held += f" ({left_out})" if left_out else ""
        interruption = replayed.interruption
        if interruption is None:
            return check_of(REPLAY, verdicts, f"{held}; it was not interrupted")
        if interruption.struck_at is None:
            check = check_of(REPLAY, verdicts, f"{held}; but it was not interrupted: {_NO_KILL}")
            return check if check.verdict is CheckVerdict.BROKEN else replace(check, verdict=CheckVerdict.MISSED)
        check = check_of(REPLAY, verdicts, f"{held}, though every process was killed in the middle")
        if check.verdict is CheckVerdict.BROKEN:
            check = replace(check, said=f"{check.said}; {_AFTER_KILL}")
        return check

    def _verdict(self, topic: str, sinks: Sequence[str], replayed: _Replayed) -> Verdict:
        log = TopicLog(self.job.outputs[sinks[0]])
        ranges = whole(log.cluster, [topic])
        expected = (each.expected for each in replayed.expected if each.sink in sinks)
        return verdict_on(topic, expected, log.see(ranges, log.whose(ranges)))

    def _compacted(self, records: int) -> str | None:
        """Say what of the input was compacted away since the checkpoint."""
        if records >= self.reach.to_replay:
            return None
        empty: dict[TopicPartition, int] = {}
        for key, source in self.job.ends.sources.items():
            ranges = {
                each: (start, self.reach.ends[each])
                for each, start in self.reach.starts.items()
                if each.topic in source.topics
            }
            empty |= TopicLog(self.job.inputs[key]).empty(ranges)
        return compaction("input", empty)
