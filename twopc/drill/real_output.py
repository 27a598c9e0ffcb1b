"""What the job really wrote since a checkpoint, held against what the input since then makes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from twopc.drill.bounds import Bounds, bounds_of
from twopc.drill.comparing import check_of, judged, required_of, since_checkpoint
from twopc.drill.judging import Ranges
from twopc.drill.reach import Reach
from twopc.drill.verdict import Check
from twopc.kafka.sink import DeliveryGuarantee
from twopc.protocol.facts import CheckpointMetadata
from twopc.protocol.ids import Position
from twopc.verify.attribution import Owners
from twopc.verify.findings import Kind, Verdict
from twopc.verify.history import Expected, Found
from twopc.verify.merging import merged

OUTPUT = "output"

#: What a sink does not promise to keep out; one that promises nothing can't break anything.
ALLOWED: Mapping[DeliveryGuarantee, frozenset[Kind]] = {
    DeliveryGuarantee.EXACTLY_ONCE: frozenset(),
    DeliveryGuarantee.AT_LEAST_ONCE: frozenset({Kind.DUPLICATED}),
}


class Log(Protocol):
    """Reads topics; a cluster does."""

    def whose(self, ranges: Ranges) -> Owners: ...

    def see(self, ranges: Ranges, whose: Owners) -> list[Found]: ...


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
        verdict = merged(", ".join(topics), [self._verdict(topic, by_topic[topic]) for topic in topics])
        figures["records compared"] = float(verdict.matched)
        if verdict.held and not verdict.matched:
            return Check.not_judged(
                OUTPUT, "the job wrote nothing after this checkpoint: name an older one with --from"
            )
        held = f"{verdict.matched:,} records of {verdict.topic} are what the replay makes"
        return check_of(OUTPUT, verdict, held + _left_out(by_topic.keys() - set(topics)), allowed)

    def _verdict(self, topic: str, expected: Sequence[Expected]) -> Verdict:
        written = {each: ends for each, ends in self.reach.written.items() if each.topic == topic}
        tail, bounds = self._tail(written, expected)
        required = self.reach.required
        return judged(topic, expected, since_checkpoint(expected, tail, required, bounds), required, bounds.is_after)

    def _tail(self, written: Ranges, expected: Sequence[Expected]) -> tuple[list[Found], Bounds]:
        """Read as much of the end of the output as may have been written since the checkpoint."""
        span, enough = 2 * len(expected) + 1_000, required_of(expected, self.reach.required) + len(expected)
        while True:
            part = {each: (max(first, Position(end - span)), end) for each, (first, end) in written.items()}
            whose = self.log.whose(part)
            found = self.log.see(part, whose)
            if part == written or len(found) >= enough:
                return found, bounds_of(self.metadata, whose)
            span *= 4


def _left_out(topics: set[str]) -> str:
    return f"; not judged: {', '.join(sorted(topics))}, unknown when the drill began" if topics else ""
