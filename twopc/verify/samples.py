"""Expected values for the findings: the judge keeps none, so a second pass over the input brings a few back."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from twopc.verify.findings import Finding, Verdict, shown
from twopc.verify.history import Expected, Place

Wanted = tuple[str, Place, str]


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
        self._last: dict[object, int] = {}
        for source in self._sources:
            self._last[source.partition] = max(source.offset, self._last.get(source.partition, -1))
        self._values: dict[Wanted, list[str]] = defaultdict(list)

    @property
    def complete(self) -> bool:
        """Whether all partitions that matter were seen beyond the last record that is wanted of them."""
        return not self._last

    def take(self, topic: str, expected: Expected) -> bool:
        """Keep the value if it is wanted; return whether a partition is done with."""
        source = expected.source
        last = self._last.get(source.partition)
        if last is None:
            return False
        if source.offset > last:
            del self._last[source.partition]
            return True
        if source in self._sources:
            self._values[topic, source, shown(expected.key)].append(shown(expected.value))
        return False

    def filled(self, verdict: Verdict) -> tuple[Finding, ...]:
        """Return the findings with the values that were expected; several, where one input record makes several."""
        return tuple(
            replace(finding, expected=" or ".join(self._values[wanted]))
            if (wanted := _wanted(verdict.topic, finding)) in self._values
            else finding
            for finding in verdict.findings
        )


def _wanted(topic: str, finding: Finding) -> Wanted | None:
    return None if finding.source is None else (topic, finding.source, finding.key)
