"""Expected values for the findings: the judge keeps none, so a second pass over the input brings a few back."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from twopc.kafka.place import Place
from twopc.kafka.topic_partition import TopicPartition
from twopc.verify.findings import Finding, Verdict, shown
from twopc.verify.history import Expected

SampleKey = tuple[str, Place, str]


class Samples:
    """The values that findings lack. `take` receives every expected record a second time, until it is complete."""

    def __init__(self, verdicts: Iterable[Verdict]) -> None:
        self.wanted = {
            wanted
            for verdict in verdicts
            for finding in verdict.findings
            if not finding.expected and (wanted := _wanted(verdict.topic, finding))
        }
        self._sources = {source for _, source, _ in self.wanted}
        self._last: dict[TopicPartition, int] = {}
        self._seen: dict[TopicPartition, int] = {}
        for source in self._sources:
            self._last[source.partition] = max(source.offset, self._last.get(source.partition, -1))
        self._values: dict[SampleKey, list[str]] = defaultdict(list)

    @property
    def complete(self) -> bool:
        """Whether all partitions that matter were seen beyond the last record that is wanted of them.

        Asked between two batches of the input: within one, a record comes again on every path.
        """
        return all(self._seen.get(partition, -1) > last for partition, last in self._last.items())

    def take(self, topic: str, expected: Expected) -> None:
        """Keep the value if it is wanted."""
        source = expected.source
        if source.partition not in self._last:
            return
        self._seen[source.partition] = max(source.offset, self._seen.get(source.partition, -1))
        if source in self._sources:
            self._values[topic, source, shown(expected.key)].append(shown(expected.value))

    def filled(self, verdict: Verdict) -> tuple[Finding, ...]:
        """Return the findings with the values that were expected; several, where one input record makes several."""
        return tuple(
            replace(finding, expected=" or ".join(self._values[wanted]))
            if (wanted := _wanted(verdict.topic, finding)) in self._values
            else finding
            for finding in verdict.findings
        )


def _wanted(topic: str, finding: Finding) -> SampleKey | None:
    return None if finding.source is None else (topic, finding.source, finding.key)
