"""Verifies topics: reads the input and makes of it what the job makes, reads the output, and judges.

The order in which the ends are asked for keeps a running job from being blamed: first how far its output has to be
there, then where the output ends, then where the input does. So all that is found is made of input that is read.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from twopc.errors import NotJudged, TwoPhaseCommitError, Unavailable
from twopc.kafka.input.hidden_input import hidden
from twopc.kafka.input.marker_wait import await_markers
from twopc.kafka.input.topic_reader import high_watermarks
from twopc.kafka.place import Place
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.kafka.topics.topic_limits import LIMIT_SETTINGS, TopicLimits
from twopc.listing import listed
from twopc.protocol.record_errors import RecordErrorCount
from twopc.verify.compaction_gaps import compaction
from twopc.verify.findings import Verdict
from twopc.verify.found_topics import FoundTopics
from twopc.verify.history import Found, Outcome
from twopc.verify.input_order import groups_of, read_group
from twopc.verify.judge import Judge
from twopc.verify.met_in_time import by_time, decided
from twopc.verify.own_topics import with_whole_topics
from twopc.verify.plan import VerifyPlan
from twopc.verify.replay import Replay, ReplayedRecord
from twopc.verify.samples import Samples
from twopc.verify.topics import Extent, extent
from twopc.verify.transaction_lookup import TopicLog, TransactionLookup

SETTLE_SECONDS = 30.0
TOLD_EVERY = 2_000

ProgressCallback = Callable[[str, int, int], None]
"""Is told what is being read, how many records of it were, and how many offsets there are."""


@dataclass(frozen=True, slots=True)
class Report:
    """The verdict on each output topic, and what was read for it.

    records_in: how many records of the input were read.
    elsewhere: how many records the job makes for topics that were not judged.
    transactions: how many ended how, counted in each partition that they wrote to.
    left_out: what of the job's output was not judged, and why.
    record_errors: how often records of the input go wrong where the job goes on behind them, by source and operator.
    unseen: what of the input is there and was not judged: it is hidden, or nobody reads it.
    """

    verdicts: tuple[Verdict, ...]
    records_in: int
    elsewhere: int
    seconds: float
    transactions: Mapping[Outcome, int] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    record_errors: tuple[RecordErrorCount, ...] = ()
    unseen: tuple[str, ...] = ()

    @property
    def held(self) -> bool:
        return all(verdict.held for verdict in self.verdicts)


def verify(plan: VerifyPlan, watch: ProgressCallback = lambda what, done, total: None) -> Report:
    """Read and judge; raise NotJudged, which says why, if that can't be done."""
    try:
        return _Verification(with_whole_topics(plan), watch).run()
    except TwoPhaseCommitError as error:
        raise NotJudged(str(error)) from error


Inputs = Mapping[str, Extent]
"""The extent of the topics of each source."""

Outputs = Mapping[str, Extent]
"""The extent of each output topic."""


class _Verification:
    def __init__(self, plan: VerifyPlan, watch: ProgressCallback) -> None:
        self._plan = plan
        self._watch = watch
        self._records_in = 0
        self._record_errors: tuple[RecordErrorCount, ...] = ()
        self._unseen: list[str] = []
        self._topics = FoundTopics({}, {})
        self._transactions: Counter[Outcome] = Counter()

    def run(self) -> Report:
        began = time.monotonic()
        plan = self._plan
        complete, outputs, inputs = self._complete(), self._written(), self._read()
        judges = {topic: Judge(topic, complete=complete, examples=plan.examples) for topic in plan.outputs}
        elsewhere = 0
        for batch in self._make(inputs):
            for record in batch:
                if record.topic in judges:
                    judges[record.topic].expect(record.expected)
                else:
                    elsewhere += 1
        records_in, record_errors = self._records_in, self._record_errors
        if records_in < sum(each.offsets for each in inputs.values()):
            self._refuse_compacted(inputs)
        for found in self._see(outputs):
            judges[found.place.partition.topic].see(found)
        verdicts = tuple(judge.finish() for judge in judges.values())
        samples = Samples(verdicts)
        if samples.wanted:
            for batch in self._make(inputs):
                for record in batch:
                    samples.take(record.topic, record.expected)
                if samples.complete:
                    break
        verdicts = tuple(replace(verdict, findings=samples.filled(verdict)) for verdict in verdicts)
        verdicts, left_out = decided(verdicts, by_time(plan.paths, plan.outputs))
        seconds = time.monotonic() - began
        transactions = dict(self._transactions)
        unseen, left_out = tuple(self._unseen), (*plan.left_out, *left_out)
        return Report(verdicts, records_in, elsewhere, seconds, transactions, left_out, record_errors, unseen)

    def _complete(self) -> dict[TopicPartition, Position]:
        """Return how far the output of each input partition has to be there, where that is not to its end."""
        complete: dict[TopicPartition, Position] = {}
        for source, cluster in self._plan.inputs.items() if self._plan.running else ():
            with cluster.client() as client:
                partitions = sorted(extent(client, self._plan.sources[source].topics, "input").ends)
                committed = client.group_offsets(self._plan.group(source), partitions)
            complete |= {
                partition: committed[partition].position if partition in committed else Position(0)
                for partition in partitions
            }
            if committed and (unread := [partition for partition in partitions if partition not in committed]):
                which = listed(map(str, unread))
                self._unseen.append(f"{which}: the job's group has no position there, so nothing there is read yet")
        return complete

    def _written(self) -> Outputs:
        """Return where the output is, and note what its topics take."""
        written: dict[str, Extent] = {}
        sinks = {topic: node.operation for node in self._plan.paths.sinks.values() for topic in node.operation.outputs}
        limits: dict[str, TopicLimits] = {}
        for topic, cluster in self._plan.outputs.items():
            with cluster.client() as client:
                # A job may have ended, or its group have moved, before the last partition shows what was committed.
                await_markers(client, SETTLE_SECONDS)
                found = extent(client, (topic,), "output")
                limits[topic] = TopicLimits.of(
                    client.settings_of(topic, LIMIT_SETTINGS), sinks[topic].properties if topic in sinks else {}
                )
            found = replace(found, log_ends=high_watermarks(cluster, found.ends))
            if not self._plan.committed:
                found = replace(found, ends=found.log_ends)
            elif not self._plan.running:
                _refuse_hidden(found)
            written[topic] = found
        partitions = Counter(end.topic for found in written.values() for end in found.ends)
        self._topics = FoundTopics(partitions, limits)
        return written

    def _read(self) -> Inputs:
        """Return where the input is."""
        inputs: dict[str, Extent] = {}
        for source, cluster in self._plan.inputs.items():
            with cluster.client() as client:
                found = extent(client, self._plan.sources[source].topics, "input")
                self._unseen += [each.named(client) for each in hidden(client, list(found.ends))]
            inputs[source] = found
        return inputs

    def _make(self, inputs: Inputs) -> Iterator[Iterable[ReplayedRecord]]:
        """Read the input; yield what the job makes of each batch."""
        offsets = sum(each.offsets for each in inputs.values())
        self._records_in = 0
        numbers = {partition.partition for each in inputs.values() for partition in each.ends}
        ahead_ms = self._plan.max_time_ahead_ms
        with Replay(self._plan.paths, topics=self._topics, numbers=numbers, max_time_ahead_ms=ahead_ms) as replay:
            for group in groups_of(self._plan.paths, self._plan.sources):
                sources = {name: self._plan.sources[name] for name in group}
                ranges = {name: inputs[name].ranges for name in group}
                together = replay.takes_several
                for turn in read_group(self._plan.paths, sources, self._plan.inputs, ranges, together=together):
                    self._records_in += turn.size
                    self._watch("input", self._records_in, offsets)
                    yield replay.make(turn)
                if self._plan.drained:
                    ends = [end for name in group for end in inputs[name].ends.items()]
                    yield replay.drain(group, {partition.partition: Place(partition, end) for partition, end in ends})
            self._record_errors = replay.record_errors

    def _owners(self, topic: str, written: Extent) -> TransactionLookup:
        """Look up whose each record of an output topic is."""
        found = TopicLog(self._plan.outputs[topic]).lookup(written.ranges, written.log_ends)
        for transactions in found.values():
            self._transactions.update(transactions.outcomes())
        if gaps := compaction("output", {partition: lookup.holes.count for partition, lookup in found.items()}):
            raise Unavailable(
                f"{gaps}, so what is lost can't be told from what was compacted away. Verify a topic with "
                "cleanup.policy=delete, or before the cleaner has run (min.compaction.lag.ms)"
            )
        return found

    def _refuse_compacted(self, inputs: Inputs) -> None:
        """Raise Unavailable where offsets without a record are more than markers and what was aborted."""
        empty: dict[TopicPartition, int] = {}
        for source, cluster in self._plan.inputs.items():
            empty |= TopicLog(cluster).empty(inputs[source].ranges)
        if gaps := compaction("input", empty):
            raise Unavailable(
                f"{gaps}, so what was made of them can't be told from what was written twice. Verify against the whole "
                "input: a topic with cleanup.policy=delete that has it, or before the cleaner has run "
                "(min.compaction.lag.ms)"
            )

    def _see(self, outputs: Outputs) -> Iterator[Found]:
        done, offsets = 0, sum(output.offsets for output in outputs.values())
        for topic, written in outputs.items():
            lookup = self._owners(topic, written)
            log = TopicLog(self._plan.outputs[topic])
            for found in log.see(written.ranges, lookup, committed=self._plan.committed):
                yield found
                done += 1
                if done % TOLD_EVERY == 0:
                    self._watch("output", done, offsets)
        self._watch("output", done, offsets)


def _refuse_hidden(written: Extent) -> None:
    behind = {partition: written.log_ends[partition] - end for partition, end in written.ends.items()}
    hidden = {partition: count for partition, count in behind.items() if count > 0}
    if hidden:
        which = ", ".join(f"{count} offsets of {partition}" for partition, count in sorted(hidden.items()))
        raise Unavailable(
            f"an open transaction hides {which} from read_committed readers, so what is lost can't be told yet. If the "
            "job is still running, say --running; else finish or abort the transaction first: start the job again"
        )
