"""Verifies topics: reads the input and makes of it what the job makes, reads the output, and judges.

The order in which the ends are asked for keeps a running job from being blamed: first how far its output has to be
there, then where the output ends, then where the input does. So all that is found is made of input that is read.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from twopc.errors import NotJudged, TwoPhaseCommitError, Unavailable
from twopc.kafka.cluster import Cluster
from twopc.kafka.ending import await_markers
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.kafka.topic_reader import high_watermarks, read
from twopc.verify.findings import Verdict
from twopc.verify.history import Expected, Found, Outcome
from twopc.verify.holes import compaction, holes_in
from twopc.verify.judge import Judge
from twopc.verify.plan import VerifyPlan
from twopc.verify.replay import Replay
from twopc.verify.samples import Samples
from twopc.verify.topics import Extent, extent
from twopc.verify.transaction_lookup import TransactionLookup, look_up_transactions, with_transaction
from twopc.verify.transactions import scan

SETTLE_SECONDS = 30.0

Watch = Callable[[str, int, int], None]
"""Is told what is being read, how many records of it were, and how many offsets there are."""


@dataclass(frozen=True, slots=True)
class Report:
    """The verdict on each output topic, and what was read for it.

    records_in: how many records of the input were read.
    elsewhere: how many records the job makes for topics that were not judged.
    transactions: how many ended how, counted in each partition that they wrote to.
    """

    verdicts: tuple[Verdict, ...]
    records_in: int
    elsewhere: int
    seconds: float
    transactions: Mapping[Outcome, int] = field(default_factory=dict)

    @property
    def held(self) -> bool:
        return all(verdict.held for verdict in self.verdicts)


def verify(plan: VerifyPlan, watch: Watch = lambda what, done, total: None) -> Report:
    """Read and judge; raise NotJudged, which says why, if that can't be done."""
    try:
        return _Verification(plan, watch).run()
    except TwoPhaseCommitError as error:
        raise NotJudged(str(error)) from error


class _Verification:
    def __init__(self, plan: VerifyPlan, watch: Watch) -> None:
        self._plan = plan
        self._watch = watch
        self._input = Cluster(plan.servers, plan.input_properties())
        self._output = Cluster(plan.servers, plan.output_properties())
        self._records_in = 0
        self._elsewhere = 0
        self._transactions: Counter[Outcome] = Counter()

    def run(self) -> Report:
        began = time.monotonic()
        plan = self._plan
        complete, outputs, inputs = self._look()
        judges = {topic: Judge(topic, complete=complete, examples=plan.examples) for topic in plan.outputs}
        for topic, expected in self._make(inputs):
            if topic in judges:
                judges[topic].expect(expected)
            else:
                self._elsewhere += 1
        records_in, elsewhere = self._records_in, self._elsewhere
        if records_in < inputs.offsets:
            self._refuse_compacted(inputs)
        for found in self._see(outputs):
            judges[found.place.partition.topic].see(found)
        verdicts = tuple(judge.finish() for judge in judges.values())
        samples = Samples(verdicts)
        if samples.wanted:
            for topic, expected in self._make(inputs):
                if samples.take(topic, expected) and samples.complete:
                    break
        verdicts = tuple(replace(each, findings=samples.filled(each)) for each in verdicts)
        return Report(verdicts, records_in, elsewhere, time.monotonic() - began, dict(self._transactions))

    def _look(self) -> tuple[Mapping[TopicPartition, Position], Extent, Extent]:
        """Return how far the output has to be there, where it is, and where the input is."""
        plan = self._plan
        with self._input.client() as inputs, self._output.client() as outputs:
            complete: dict[TopicPartition, Position] = {}
            if plan.running:
                partitions = sorted(extent(inputs, plan.inputs, "input").ends)
                committed = inputs.group_offsets(plan.group, partitions)
                complete = {each: committed[each].position if each in committed else Position(0) for each in partitions}
            # A job may have ended, or its group have moved, before the last partition shows what was committed.
            await_markers(outputs, SETTLE_SECONDS)
            written = extent(outputs, plan.outputs, "output")
            written = replace(written, log_ends=high_watermarks(self._output, written.ends))
            if not plan.committed:
                written = replace(written, ends=written.log_ends)
            elif not plan.running:
                _refuse_hidden(written)
            return complete, written, extent(inputs, plan.inputs, "input")

    def _make(self, inputs: Extent) -> Iterator[tuple[str, Expected]]:
        """Read the input; yield what the job makes of it with its topic: the judged one, if the job has only one."""
        source, sink = self._plan.source, self._plan.sink
        replay = Replay(self._plan.job)
        renamed = self._plan.outputs[0] if isinstance(sink.topic, str) else None
        self._records_in = 0
        for batch in read(self._input, inputs.ranges, key=source.key, value=source.value):
            self._records_in += len(batch)
            self._watch("input", self._records_in, inputs.offsets)
            for topic, expected in replay.make(batch):
                yield renamed or topic, expected

    def _owners(self, outputs: Extent) -> TransactionLookup:
        """Look up whose each output record is."""
        with self._output.client() as client:
            found = look_up_transactions(client, outputs.firsts, outputs.log_ends)
        for transactions in found.values():
            self._transactions.update(transactions.outcomes())
        if said := compaction("output", {each: whose.holes.count for each, whose in found.items()}):
            raise Unavailable(
                f"{said}, so what is lost can't be told from what was compacted away. Verify a topic with "
                "cleanup.policy=delete, or before the cleaner has run (min.compaction.lag.ms)"
            )
        return found

    def _refuse_compacted(self, inputs: Extent) -> None:
        """Raise Unavailable where offsets without a record are more than markers and what was aborted."""
        with self._input.client() as client:
            empty = {
                each: holes_in(first, scan(partial(client.fetch, each), first, inputs.ends[each]))
                for each, first in inputs.firsts.items()
            }
        if said := compaction("input", empty):
            raise Unavailable(
                f"{said}, so what was made of them can't be told from what was written twice. Verify against the whole "
                "input: a topic with cleanup.policy=delete that has it, or before the cleaner has run "
                "(min.compaction.lag.ms)"
            )

    def _see(self, outputs: Extent) -> Iterator[Found]:
        done, whose = 0, self._owners(outputs)
        for batch in read(self._output, outputs.ranges, committed=self._plan.committed):
            for row in batch.rows:
                yield with_transaction(row, whose)
            done += len(batch)
            self._watch("output", done, outputs.offsets)


def _refuse_hidden(written: Extent) -> None:
    behind = {partition: written.log_ends[partition] - end for partition, end in written.ends.items()}
    hidden = {partition: count for partition, count in behind.items() if count > 0}
    if hidden:
        which = ", ".join(f"{count} offsets of {partition}" for partition, count in sorted(hidden.items()))
        raise Unavailable(
            f"an open transaction hides {which} from read_committed readers, so what is lost can't be told yet. If the "
            "job is still running, say --running; else finish or abort the transaction first: start the job again"
        )
