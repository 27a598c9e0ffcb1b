"""Counts the findings of each kind, and keeps the first few."""

from __future__ import annotations

from collections import Counter, defaultdict

from twopc.kafka.place import Place
from twopc.kafka.topic_partition import TopicPartition
from twopc.verify.findings import Finding, Kind

_NOWHERE = Place(TopicPartition("", -1), -1)


class FindingCounters:
    """Findings rank by partition and offset: those of the output, or of the input for a missing record."""

    def __init__(self, examples: int) -> None:
        self._examples = examples
        self._kept: dict[Kind, list[Finding]] = defaultdict(list)
        self.counts: Counter[Kind] = Counter()

    def add(self, finding: Finding) -> None:
        kind = finding.kind
        self.counts[kind] += 1
        kept = self._kept[kind]
        kept.append(finding)
        if len(kept) >= max(1_000, 2 * self._examples):
            self._cut(kind)

    def first(self) -> tuple[Finding, ...]:
        """The first of each kind, kind by kind."""
        for kind in self._kept:
            self._cut(kind)
        return tuple(finding for kind in Kind for finding in self._kept.get(kind, ()))

    def _cut(self, kind: Kind) -> None:
        self._kept[kind] = sorted(self._kept[kind], key=_order)[: self._examples]


def _order(finding: Finding) -> Place:
    return finding.place or finding.source or _NOWHERE
