"""The scratch run of a restore drill, and the judgement of what it wrote, and of what the job really wrote."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from twopc import events
from twopc.config import RunSettings
from twopc.drill.bounds import prepared_of
from twopc.drill.broker import create_scratch_topic, delete_scratch_group, delete_scratch_topic
from twopc.drill.expected_output import ExpectedOutput
from twopc.drill.interruption import PATIENCE_SECONDS, Interruption, middles
from twopc.drill.job import DrillJob
from twopc.drill.output_comparison import TopicVerdict, check_of
from twopc.drill.own_topics import OwnOutput, OwnTopic, on_scratch_topics, own_topics
from twopc.drill.real_output import OUTPUT, OutputTopic, RealOutput
from twopc.drill.replay_range import ReplayRange
from twopc.drill.scratch_job import Names, write_scratch_file
from twopc.drill.timeline import RecoveryClock, Timeline
from twopc.drill.verdict import Check, CheckVerdict
from twopc.driver.processes import plain_processes_begun
from twopc.driver.run import run as run_job
from twopc.errors import CheckpointCorrupted, Fenced, ProtocolViolation, TransactionLost, Unavailable, UserCodeError
from twopc.graph import JobDefinition
from twopc.kafka.input.topic_reader import whole
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.loader.job_loader import load_job
from twopc.protocol.facts import CheckpointMetadata
from twopc.verify.compaction_gaps import compaction
from twopc.verify.findings import Verdict
from twopc.verify.judge import verdict_on
from twopc.verify.replay import ReplayedRecord
from twopc.verify.transaction_lookup import TopicLog

REPLAY = "replay"

_OF_THE_JOB = (CheckpointCorrupted, Fenced, ProtocolViolation, TransactionLost, UserCodeError)
"""Errors that say something about job or checkpoint; any other means that the drill could not run."""


_NO_KILL = f"no checkpoint completed in {PATIENCE_SECONDS:.0f} s while it stood still in the middle"
_TO_REPLAY = "nothing was replayed. Name an earlier checkpoint (--from), or give the job more input"
_AFTER_KILL = (
    "every process was killed once, in the middle: a function that keeps something outside its state does not get it "
    "back (--no-interrupt replays without the kill)"
)


@dataclass(frozen=True, slots=True)
class _ReplayResult:
    """The expected output by topic, the number of records replayed, and how the run was interrupted.

    `expected` is of the scratch run, `really` of the real one. They differ where the job reads what it writes itself:
    each is made of the order in which its own run has written that.
    """

    expected: list[ReplayedRecord]
    really: list[ReplayedRecord]
    records: int
    interruption: Interruption | None


@dataclass(frozen=True, slots=True)
class Replay:
    """Everything that a replay works with. `folder` is all that is scratch; `interrupt`: it is killed in the middle."""

    job: DrillJob
    job_file: str
    metadata: CheckpointMetadata
    replay_range: ReplayRange
    settings: RunSettings
    folder: Path
    timeline: Timeline
    tell: Callable[[str], None]
    on_event: Callable[[events.Event], None] | None
    interrupt: bool = True

    def play(self, figures: dict[str, float | None]) -> Iterator[Check]:
        """Run, yield the checks, and leave no scratch name on the brokers; add to the figures."""
        names = Names.fresh()
        own = own_topics(self.job, names)
        with self._scratch(names):
            try:
                unread = [topic.copy_unread(self.metadata, self.replay_range.starts) for topic in own]
                replayed = self._run(names, own, figures)
            except _OF_THE_JOB as error:
                yield Check(REPLAY, CheckVerdict.BROKEN, "the replay failed", (f"{type(error).__name__}: {error}",))
                return
            self.tell("comparing the output")
            yield self._judge_replay(names, replayed, {at: end for each in unread for at, end in each.items()})
            if compacted := self._compacted(replayed.records):
                yield Check.not_judged(OUTPUT, f"{compacted}: what the job made of them can't be worked out any more")
                return
            if not any(map(self.job.is_known, self.job.connectors.sinks)):
                yield Check.not_judged(OUTPUT, "; ".join(self.job.unknown))
                return
            real = RealOutput(self._topics(), self.metadata, self.replay_range)
            yield real.judge(((record.topic, record.expected) for record in replayed.really), figures)

    def _topics(self) -> dict[str, OutputTopic]:
        """The topics of the real output that are judged, by name."""
        topics: dict[str, OutputTopic] = {}
        read_back = self.job.own_topics
        for topic in {partition.topic for partition in self.replay_range.written}:
            cluster = self.job.outputs[self._writer(topic)]
            own = [item for item in self.metadata.committables if self.job.cluster_of(item).servers == cluster.servers]
            kind = OwnOutput if topic in read_back else OutputTopic
            topics[topic] = kind(TopicLog(cluster), self.job.guarantee(topic), prepared_of(own))
        return topics

    def _writer(self, topic: str) -> str:
        """Return a sink of the topic's cluster: one that has this topic, else one that chooses."""
        return min(self.job.writers(topic), key=lambda sink: topic not in self.job.connectors.sinks[sink].outputs)

    @contextmanager
    def _scratch(self, names: Names) -> Iterator[None]:
        """Have the scratch names on the brokers, and nothing of them afterwards."""
        outputs = self._outputs(names)
        try:
            for topic, sinks in outputs.items():
                if sinks[0] in self.job.connectors.own.values():
                    continue
                real = [name for sink in sinks for name in self.job.connectors.sinks[sink].outputs]
                create_scratch_topic(self.job.outputs[sinks[0]], topic, self.replay_range.partitions(real))
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
        for sink, topic in names.outputs(self.job.connectors).items():
            outputs.setdefault(topic, []).append(sink)
        return outputs

    def _run(self, names: Names, own: Sequence[OwnTopic], figures: dict[str, float | None]) -> _ReplayResult:
        """Run the job on the copy, and work out what it should have written."""
        job = self.job
        with ExitStack() as opened:
            # Before the run prunes what they are restored from.
            expected_output = opened.enter_context(self._expected_output(job.definition, "expected"))
            beside = expected_output
            if own:
                beside = opened.enter_context(self._expected_output(on_scratch_topics(job.definition, own), "beside"))
            self.tell(f"restoring checkpoint {self.metadata.checkpoint_id} and replaying")
            interruption = self._run_job(names, figures)
            self.tell("working out what the output must be")
            expected = really = list(
                expected_output.compute(job.inputs, self.replay_range.starts, self.replay_range.ends)
            )
            figures["records replayed"] = float(expected_output.records)
            if own:
                ranges = {at: ends for topic in own for at, ends in whole(topic.cluster, [topic.scratch]).items()}
                starts = {**self.replay_range.starts, **{at: first for at, (first, _) in ranges.items()}}
                ends = {**self.replay_range.ends, **{at: end for at, (_, end) in ranges.items()}}
                expected = list(beside.compute(job.inputs, starts, ends))
            return _ReplayResult(expected, really, expected_output.records, interruption)

    def _expected_output(self, definition: JobDefinition, name: str) -> ExpectedOutput:
        folder, ahead_ms = Path(self.settings.checkpoint_dir) / self.metadata.job, self.settings.max_time_ahead_ms
        return ExpectedOutput(definition, self.metadata, folder, self.folder / name, ahead_ms)

    def _run_job(self, names: Names, figures: dict[str, float | None]) -> Interruption | None:
        """Run, and return how it was interrupted; None if it was not to be, or there is no middle."""
        stops = (
            middles(self.replay_range.starts, self.replay_range.ends)
            if self.interrupt and self.replay_range.to_replay > 1
            else {}
        )
        job_file = write_scratch_file(self.folder, self.job_file, names, self.replay_range.ends, stops)
        sources = len(self.job.connectors.inputs)
        interruption = Interruption(self.folder, self.settings.parallelism, sources) if stops else None
        # The scratch topics in the place of the job's own have what was not read of those.
        left = sorted({*self.settings.drop_inputs, *self.job.own_topics})
        settings = replace(self.settings, restore_from=str(self.metadata.checkpoint_id), drop_inputs=tuple(left))
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

        with plain_processes_begun(settings, job_file) as host:
            report = run_job(load_job(job_file), settings, on_event=note, host=host)
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

    def _judge_replay(self, names: Names, replayed: _ReplayResult, begins: Mapping[TopicPartition, Position]) -> Check:
        """Hold what the restored run wrote against what the input makes."""
        left_out = "; ".join(self.job.left_out)
        outputs = {topic: sinks for topic, sinks in self._outputs(names).items() if all(map(self.job.is_judged, sinks))}
        if not outputs:
            return Check.not_judged(REPLAY, left_out)
        verdicts = [TopicVerdict(self._verdict(topic, sinks, replayed, begins)) for topic, sinks in outputs.items()]
        matched = sum(verdict.verdict.matched for verdict in verdicts)
        held = f"{replayed.records:,} records replayed, {matched:,} written, each exactly once"
        held += f" ({left_out})" if left_out else ""
        interruption = replayed.interruption
        if not replayed.records:
            number = self.metadata.checkpoint_id
            return _proving_nothing(
                check_of(REPLAY, verdicts, f"no record of the input stands behind checkpoint {number}: {_TO_REPLAY}")
            )
        if interruption is None:
            return check_of(REPLAY, verdicts, f"{held}; it was not interrupted")
        if interruption.struck_at is None:
            return _proving_nothing(check_of(REPLAY, verdicts, f"{held}; but it was not interrupted: {_NO_KILL}"))
        check = check_of(REPLAY, verdicts, f"{held}, though every process was killed in the middle")
        if check.verdict is CheckVerdict.BROKEN:
            check = replace(check, text=f"{check.text}; {_AFTER_KILL}")
        return check

    def _verdict(
        self, topic: str, sinks: Sequence[str], replayed: _ReplayResult, begins: Mapping[TopicPartition, Position]
    ) -> Verdict:
        """Judge what the run has written to a topic, from where it `begins`, its first record unless that is said."""
        log = TopicLog(self.job.outputs[sinks[0]])
        ranges = {
            partition: (begins.get(partition, first), end)
            for partition, (first, end) in whole(log.cluster, [topic]).items()
        }
        expected = (record.expected for record in replayed.expected if record.sink in sinks)
        return verdict_on(topic, expected, log.see(ranges, log.lookup(ranges)))

    def _compacted(self, records: int) -> str | None:
        """Say what of the input was compacted away since the checkpoint."""
        if records >= self.replay_range.to_replay:
            return None
        empty: dict[TopicPartition, int] = {}
        for key, source in self.job.connectors.sources.items():
            ranges = {
                partition: (start, self.replay_range.ends[partition])
                for partition, start in self.replay_range.starts.items()
                if partition.topic in source.topics
            }
            empty |= TopicLog(self.job.inputs[key]).empty(ranges)
        return compaction("input", empty)


def _proving_nothing(check: Check) -> Check:
    """The check of a replay in which nothing was wrong, and not all was done that it is for."""
    return check if check.verdict is CheckVerdict.BROKEN else replace(check, verdict=CheckVerdict.MISSED)
