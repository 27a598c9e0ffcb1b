"""What the job really wrote since a checkpoint, held against what the input since then makes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from twopc.drill.bounds import bounds_of, prepared_of
from twopc.drill.comparing import check_of, judged, required_of, since_checkpoint
from twopc.drill.judging import Ranges
from twopc.drill.reach import Reach
from twopc.drill.verdict import Check
from twopc.drill.verdict import Verdict as CheckVerdict
from twopc.kafka.sink import DeliveryGuarantee
from twopc.kafka.topic_partition import Position
from twopc.protocol.facts import CheckpointMetadata
from twopc.verify.findings import Kind, Verdict, merged
from twopc.verify.history import Expected, Found
from twopc.verify.holes import compaction
from twopc.verify.transaction_lookup import TransactionLookup

OUTPUT = "output"

#: What a sink does not promise to keep out; one that promises nothing can't break anything.
ALLOWED: Mapping[DeliveryGuarantee, frozenset[Kind]] = {
    DeliveryGuarantee.EXACTLY_ONCE: frozenset(),
    DeliveryGuarantee.AT_LEAST_ONCE: frozenset({Kind.DUPLICATED}),
}


class Log(Protocol):
    """Reads topics; a cluster does."""

    def whose(self, ranges: Ranges) -> TransactionLookup: ...

    def see(self, ranges: Ranges, whose: TransactionLookup) -> list[Found]: ...


@dataclass(frozen=True, slots=True)
class _Compared:
    """What came of one topic; `compacted` says what of it can't be judged."""

    verdict: Verdict
    by_value: int
    alike: int
    compacted: str


@dataclass(frozen=True, slots=True)
class RealOutput:
    """The topics that the job writes to, as far as they could be seen when the reach was fixed."""

    log: Log
    metadata: CheckpointMetadata
    reach: Reach
    guarantee: DeliveryGuarantee

    def judge(self, made: Sequence[tuple[str, Expected]], figures: dict[str, float | None]) -> Check:
        """Judge every topic that is known; `made` is what the input since the checkpoint makes, by topic."""
        allowed = ALLOWED.get(self.guarantee)
        if allowed is None:
            return Check.not_judged(OUTPUT, f"a sink with delivery_guarantee={self.guarantee.value!r} promises nothing")
        by_topic: dict[str, list[Expected]] = defaultdict(list)
        for topic, expected in made:
            by_topic[topic].append(expected)
        topics = sorted({each.topic for each in self.reach.written})
        if not topics:
            return Check.not_judged(
                OUTPUT,
                "the job chooses the topic of each record by a function, and no transaction of a kept checkpoint has "
                "one",
            )
        compared = [self._compare(topic, by_topic[topic]) for topic in topics]
        if emptied := [each.compacted for each in compared if each.compacted]:
            return Check.not_judged(OUTPUT, "; ".join(emptied))
        verdict = merged(", ".join(topics), [each.verdict for each in compared])
        figures["records compared"] = float(verdict.matched)
        return self._said(verdict, compared, allowed, _left_out(by_topic.keys() - set(topics)))

    def _said(self, verdict: Verdict, compared: Sequence[_Compared], allowed: frozenset[Kind], left_out: str) -> Check:
        repeated = () if Kind.DUPLICATED in allowed else self.reach.repeated
        if repeated and verdict.held:
            return Check(OUTPUT, CheckVerdict.BROKEN, "the job went back, and wrote output a second time", repeated)
        if verdict.held and not verdict.matched:
            return Check.not_judged(
                OUTPUT, "the job wrote nothing after this checkpoint: name an older one with --from"
            )
        alike, by_value = sum(each.alike for each in compared), sum(each.by_value for each in compared)
        if alike and verdict.held and Kind.DUPLICATED not in allowed:
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
        check = check_of(OUTPUT, verdict, held, allowed)
        return replace(check, findings=(*check.findings, *repeated)) if repeated else check

    def _compare(self, topic: str, expected: Sequence[Expected]) -> _Compared:
        written = {each: ends for each, ends in self.reach.written.items() if each.topic == topic}
        tail, whose = self._tail(written, expected)
        bounds, required = bounds_of(self.metadata, whose), self.reach.required
        since = since_checkpoint(expected, tail, required, bounds)
        return _Compared(
            judged(topic, expected, since.found, required, bounds.is_after),
            since.by_value,
            since.alike,
            compaction("output", {each: own.holes.count for each, own in whose.items()}) or "",
        )

    def _tail(self, written: Ranges, expected: Sequence[Expected]) -> tuple[list[Found], TransactionLookup]:
        """Read as much of the end of the output as may have been written since the checkpoint.

        That may be more than is expected, where the job has written something twice.
        """
        span, enough = 2 * len(expected) + 1_000, required_of(expected, self.reach.required) + len(expected)
        began_ms = min((each.start_ms for each in prepared_of(self.metadata)), default=None)
        while True:
            part = {each: (max(first, Position(end - span)), end) for each, (first, end) in written.items()}
            whose = self.log.whose(part)
            found = self.log.see(part, whose)
            reaches = began_ms is None or all(each.reaches(began_ms) for each in whose.values())
            if part == written or (len(found) >= enough and reaches):
                return found, whose
            span *= 4


def _left_out(topics: set[str]) -> str:
    return f"; not judged: {', '.join(sorted(topics))}, unknown when the drill began" if topics else ""
