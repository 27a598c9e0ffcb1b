"""The findings about an output, by name, and the verdict that says how often and where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from twopc.kafka.place import Place

SHOWN_BYTES = 64


class Kind(Enum):
    """The ways in which an output can break its promise."""

    LOST = "lost"
    DUPLICATED = "duplicated"
    REORDERED = "reordered"
    TORN = "torn"
    ABORTED = "aborted"
    DISAGREES = "disagrees"
    UNEXPECTED = "unexpected"

    @property
    def meaning(self) -> str:
        return _MEANINGS[self]


_MEANINGS = {
    Kind.LOST: "the input makes it, and the output doesn't have it",
    Kind.DUPLICATED: "it is there more often than the input makes it",
    Kind.REORDERED: "it does not stand in the order of its input partition",
    Kind.TORN: "it is missing, and other records of the same transaction are there",
    Kind.ABORTED: "it can be seen, and its transaction was not committed",
    Kind.DISAGREES: "its place in its key holds a record that the input doesn't make: the state or the job was another",
    Kind.UNEXPECTED: "the input makes no such record",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One record with which something is wrong.

    `source` is the input record that it is made of, `place` where it stands in the output; each is None where there is
    none. `expected` and `found` are values as a person can read them, shortened; empty where they are not known.
    """

    kind: Kind
    key: str
    source: Place | None = None
    place: Place | None = None
    expected: str = ""
    found: str = ""
    detail: str = ""

    def __str__(self) -> str:
        where = self.place or f"made of {self.source}"
        parts = [f"{self.kind.value}: {where}, key {self.key}"]
        if self.place and self.source:
            parts.append(f"made of {self.source}")
        parts += [f"{name} {text}" for name, text in (("expected", self.expected), ("found", self.found)) if text]
        parts += [self.detail] if self.detail else []
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judgement of one output topic.

    expected: how many records the input makes that had to be there.
    pending: how many more it makes of input that was not required to be processed yet, and that are not there.
    found: how many records were seen.
    matched: how many of them are records that the input makes, each counted once.
    counts: how many records each kind was found on; kinds that weren't found are left out.
    findings: the first few of each kind.
    unordered_keys: how many keys have records that can't be told apart, so that their order was not judged whole.
    """

    topic: str
    expected: int
    pending: int
    found: int
    matched: int
    counts: Mapping[Kind, int]
    findings: tuple[Finding, ...]
    unordered_keys: int = 0

    @property
    def held(self) -> bool:
        """Whether no promise was broken."""
        return not self.counts


def merged(name: str, verdicts: Sequence[Verdict]) -> Verdict:
    """Add verdicts up, under a name of their own."""
    counts = Counter[Kind]()
    for verdict in verdicts:
        counts.update(verdict.counts)
    return Verdict(
        topic=name,
        expected=sum(verdict.expected for verdict in verdicts),
        pending=sum(verdict.pending for verdict in verdicts),
        found=sum(verdict.found for verdict in verdicts),
        matched=sum(verdict.matched for verdict in verdicts),
        counts=dict(counts),
        findings=tuple(finding for verdict in verdicts for finding in verdict.findings),
        unordered_keys=sum(verdict.unordered_keys for verdict in verdicts),
    )


def shown(data: bytes | None) -> str:
    """Return a key or value as a person can read it, shortened."""
    if data is None:
        return "null"
    text = repr(data[:SHOWN_BYTES])[1:]
    return text if len(data) <= SHOWN_BYTES else f"{text}... ({len(data)} bytes)"
