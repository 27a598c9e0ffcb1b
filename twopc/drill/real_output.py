"""The job's real output since a checkpoint, compared with what the input since then makes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from twopc.drill.bounds import bounds_of
from twopc.drill.output_comparison import (
    Ends,
    OutputSinceCheckpoint,
    TopicVerdict,
    check_of,
    required_of,
    since_checkpoint,
)
from twopc.drill.replay_range import ReplayRange
from twopc.drill.verdict import Check, CheckVerdict
from twopc.kafka.input.topic_reader import Ranges
from twopc.kafka.sink import DeliveryGuarantee
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.kafka.transactions.committable import PreparedTransaction
from twopc.protocol.facts import CheckpointMetadata
from twopc.verify.compaction_gaps import compaction
from twopc.verify.findings import Kind, Verdict, merged
from twopc.verify.history import Expected, Found
from twopc.verify.judge import verdict_on
from twopc.verify.lanes import IsCertain
from twopc.verify.transaction_lookup import TransactionLookup

OUTPUT = "output"

#: What a sink does not promise to keep out; one that promises nothing can't break anything.
ALLOWED: Mapping[DeliveryGuarantee, frozenset[Kind]] = {
    DeliveryGuarantee.EXACTLY_ONCE: frozenset(),
    DeliveryGuarantee.AT_LEAST_ONCE: frozenset({Kind.DUPLICATED}),
}


class Log(Protocol):
    """Reads topics; `twopc.verify.transaction_lookup.TopicLog` does."""

    def lookup(self, ranges: Ranges) -> TransactionLookup: ...

    def see(self, ranges: Ranges, lookup: TransactionLookup) -> Iterable[Found]: ...


@dataclass(frozen=True, slots=True)
class OutputTopic:
    """One topic that the job writes to: how it is read, what is promised of it, and what a checkpoint has of there.

    `prepared` are the checkpoint's transactions on the cluster of the topic, whichever topics they wrote to.
    """

    log: Log
    guarantee: DeliveryGuarantee
    prepared: Sequence[PreparedTransaction]

    def written(
        self, topic: str, metadata: CheckpointMetadata, replay_range: ReplayRange, expected: Sequence[Expected]
    ) -> WrittenOutput:
        """Return what was written since the checkpoint, where this is made of the input since then."""
        tail, lookup = self._tail(replay_range.written_to(topic), replay_range.required, expected)
        bounds = bounds_of(metadata, self.prepared, lookup)
        since = since_checkpoint(expected, tail, replay_range.required, bounds)
        return WrittenOutput(since, bounds.is_after, holes_of(lookup))

    def _tail(
        self, written: Ranges, required: Ends, expected: Sequence[Expected]
    ) -> tuple[list[Found], TransactionLookup]:
        """Read as much of the end of the output as may have been written since the checkpoint.

        That may be more than is expected, where the job has written something twice.
        """
        span, enough = 2 * len(expected) + 1_000, required_of(expected, required) + len(expected)
        began_ms = min((transaction.start_ms for transaction in self.prepared), default=None)
        while True:
            part = {partition: (max(first, Position(end - span)), end) for partition, (first, end) in written.items()}
            lookup = self.log.lookup(part)
            found = list(self.log.see(part, lookup))
            reaches = began_ms is None or all(each.reaches(began_ms) for each in lookup.values())
            if part == written or (len(found) >= enough and reaches):
                return found, lookup
            span *= 4


@dataclass(frozen=True, slots=True)
class WrittenOutput:
    """The records of a topic since a checkpoint; `surely` tells of which records nothing but values says that.

    `holes` counts the offsets at which nothing stands any more.
    """

    since: OutputSinceCheckpoint
    surely: IsCertain
    holes: Mapping[TopicPartition, int]


def holes_of(lookup: TransactionLookup) -> dict[TopicPartition, int]:
    """Return how many holes each log has, as far as it was read."""
    return {partition: own.holes.count for partition, own in lookup.items()}


@dataclass(frozen=True, slots=True)
class _Comparison:
    """The comparison of one topic; `compacted` says what of it can't be judged."""

    judged: TopicVerdict
    by_value: int
    alike: int
    compacted: str


@dataclass(frozen=True, slots=True)
class RealOutput:
    """The topics that the job writes to, as far as they could be seen when the replay range was fixed."""

    topics: Mapping[str, OutputTopic]
    metadata: CheckpointMetadata
    replay_range: ReplayRange

    def judge(self, made: Iterable[tuple[str, Expected]], figures: dict[str, float | None]) -> Check:
        """Judge every topic that is known; `made` is what the input since the checkpoint makes, by topic."""
        by_topic: dict[str, list[Expected]] = defaultdict(list)
        for topic, expected in made:
            by_topic[topic].append(expected)
        if not self.topics:
            return Check.not_judged(
                OUTPUT,
                "the job chooses the topic of each record by a function, and no transaction of a kept checkpoint has "
                "one",
            )
        promised = {topic: allowed for topic in sorted(self.topics) if (allowed := self._allowed(topic)) is not None}
        if not promised:
            return Check.not_judged(OUTPUT, _promises_nothing(sorted(self.topics)))
        compared = {topic: self._compare(topic, by_topic[topic], allowed) for topic, allowed in promised.items()}
        if emptied := [comparison.compacted for comparison in compared.values() if comparison.compacted]:
            return Check.not_judged(OUTPUT, "; ".join(emptied))
        verdict = merged(", ".join(compared), [comparison.judged.verdict for comparison in compared.values()])
        figures["records compared"] = float(verdict.matched)
        left_out = _left_out(by_topic.keys() - self.topics.keys(), sorted(self.topics.keys() - promised.keys()))
        return self._check_of(verdict, list(compared.values()), left_out)

    def _allowed(self, topic: str) -> frozenset[Kind] | None:
        return ALLOWED.get(self.topics[topic].guarantee)

    def _check_of(self, verdict: Verdict, compared: Sequence[_Comparison], left_out: str) -> Check:
        once = [comparison for comparison in compared if Kind.DUPLICATED not in comparison.judged.allowed]
        repeated = self.replay_range.repeated if once else ()
        if repeated and verdict.held:
            return Check(OUTPUT, CheckVerdict.BROKEN, "the job went back, and wrote output a second time", repeated)
        if verdict.held and not verdict.matched:
            return Check.not_judged(
                OUTPUT, "the job wrote nothing after this checkpoint: name an older one with --from"
            )
        alike, by_value = sum(each.alike for each in once), sum(comparison.by_value for comparison in compared)
        if alike and verdict.held:
            return Check.not_judged(
                OUTPUT,
                f"{verdict.matched:,} records of {verdict.topic} are what the replay makes, but {alike:,} that stand "
                "before them look the same: either the job went back and wrote them twice, or it made the same before "
                "this checkpoint. Its transactions don't tell where it stood: drill another one, with --from",
            )
        how = (
            f"compared by value from the end, as nothing tells where the checkpoint stood for {by_value:,} records"
            if by_value
            else "compared by position, from where the checkpoint's transactions ended"
        )
        held = f"{verdict.matched:,} records of {verdict.topic} are what the replay makes, {how}{left_out}"
        check = check_of(OUTPUT, [comparison.judged for comparison in compared], held)
        return replace(check, findings=(*check.findings, *repeated)) if repeated else check

    def _compare(self, topic: str, expected: Sequence[Expected], allowed: frozenset[Kind]) -> _Comparison:
        written = self.topics[topic].written(topic, self.metadata, self.replay_range, expected)
        since = written.since
        verdict = verdict_on(topic, expected, since.found, complete=self.replay_range.required, surely=written.surely)
        return _Comparison(
            TopicVerdict(verdict, allowed), since.by_value, since.alike, compaction("output", written.holes) or ""
        )


def _promises_nothing(topics: Sequence[str]) -> str:
    none = DeliveryGuarantee.NONE.value
    return f"a sink with delivery_guarantee={none!r} promises nothing, and such write to {', '.join(topics)}"


def _left_out(unknown: set[str], without_promise: Sequence[str]) -> str:
    parts = [f"{', '.join(sorted(unknown))}, unknown when the drill began"] if unknown else []
    parts += [_promises_nothing(without_promise)] if without_promise else []
    return f"; not judged: {'; '.join(parts)}" if parts else ""
