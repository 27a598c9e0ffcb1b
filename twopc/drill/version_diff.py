"""Compares what two versions of a job make of the same input. Pure.

The judge of outputs judges: what the one version makes is expected, what the other makes is found. Each input partition
is judged for itself, for on both sides it is known which input record an output is made of. To the judge a record
stands where it comes in its lane, so that each of its findings leads back to one record of either side.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from twopc.drill.verdict import Check, CheckVerdict
from twopc.kafka.place import Place
from twopc.kafka.topic_partition import TopicPartition
from twopc.verify.findings import Finding, Kind, Verdict, shown
from twopc.verify.history import Expected, Found
from twopc.verify.judge import verdict_on

OUTPUT = "output"
EXAMPLES = 10
_KEPT = 10_000
"""So many findings of each kind are kept of a lane, of which the first of the input are shown."""

_Lane = tuple[str, TopicPartition]
"""An output topic, and the input partition that goes there."""


@dataclass(frozen=True, slots=True)
class VersionOutput:
    """The output of a version, called by its job file, with its topic; or how it failed on a record."""

    version: str
    made: Sequence[tuple[str, Expected]] = ()
    failure: str = ""

    def lanes(self) -> dict[_Lane, list[Expected]]:
        lanes: dict[_Lane, list[Expected]] = defaultdict(list)
        for topic, output in self.made:
            lanes[topic, output.source.partition].append(output)
        # What goes there on several paths interleaves as the input was cut into batches, which means nothing.
        return {lane: sorted(every, key=_by_input) for lane, every in lanes.items()}


@dataclass(frozen=True, slots=True)
class VersionDiff:
    """The difference of two versions' output; `findings` are the first of each kind, by input record."""

    one: str
    other: str
    same: int
    counts: Mapping[Kind, int] = field(default_factory=dict)
    findings: tuple[str, ...] = ()

    @property
    def figures(self) -> dict[str, float]:
        names = ("with another value", "only of the job", "only of the other", "in another order")
        figures = {"the same": self.same, **dict(zip(names, self._counted(), strict=True))}
        return {f"{name}, records": float(count) for name, count in figures.items()}

    def check(self) -> Check:
        names = ("with another value", f"only of {self.one}", f"only of {self.other}", "in another order")
        listing = ", ".join(f"{count:,} {name}" for name, count in zip(names, self._counted(), strict=True) if count)
        held = f"{self.one} and {self.other} make the same {self.same:,} records"
        return Check.of(
            OUTPUT, self.findings, held=held, broken=f"the versions differ: {listing}; {self.same:,} the same"
        )

    def _counted(self) -> tuple[int, int, int, int]:
        count = Counter(self.counts)
        added = count[Kind.UNEXPECTED] + count[Kind.DUPLICATED]
        return count[Kind.DISAGREES], count[Kind.LOST], added, count[Kind.REORDERED]


def diff(one: VersionOutput, other: VersionOutput) -> VersionDiff:
    """Hold the other version's output against the one's."""
    of_one, of_other = one.lanes(), other.lanes()
    counts, same, examples = Counter[Kind](), 0, list[_Example]()
    for lane in sorted(of_one.keys() | of_other.keys()):
        pair = _Pair(one.version, other.version, lane[0], of_one.get(lane, []), of_other.get(lane, []))
        verdict = pair.judged()
        counts.update(verdict.counts)
        same += verdict.matched - verdict.counts.get(Kind.REORDERED, 0)
        examples += map(pair.example, verdict.findings)
    return VersionDiff(one.version, other.version, same, dict(counts), tuple(_first(examples)))


def failed(one: VersionOutput, other: VersionOutput) -> Check | None:
    """Return what is to be said if one of both failed on a record: it differs there, and is not compared."""
    for bad, good in ((one, other), (other, one)):
        if bad.failure and not good.failure:
            text = f"{bad.version} fails on a record that {good.version} takes, so that their output is not compared"
            return Check(OUTPUT, CheckVerdict.BROKEN, text, (bad.failure,))
    return None


@dataclass(frozen=True, slots=True, order=True)
class _Example:
    place: Place
    kind: str
    text: str


def _first(examples: Iterable[_Example]) -> Iterator[str]:
    count = Counter[str]()
    for example in sorted(examples):
        count[example.kind] += 1
        if count[example.kind] <= EXAMPLES:
            yield example.text


@dataclass(frozen=True, slots=True)
class _Pair:
    """The output of both versions from one input partition for one topic."""

    one: str
    other: str
    topic: str
    of_one: Sequence[Expected]
    of_other: Sequence[Expected]

    def judged(self) -> Verdict:
        left = (
            Expected(Place(expected.source.partition, index), _certain(expected.key), expected.value, expected.headers)
            for index, expected in enumerate(self.of_one)
        )
        right = (
            Found(Place(expected.source.partition, index), _certain(expected.key), expected.value, expected.headers)
            for index, expected in enumerate(self.of_other)
        )
        return verdict_on(self.topic, left, right, examples=_KEPT)

    def example(self, finding: Finding) -> _Example:
        left = None if finding.source is None else self.of_one[finding.source.offset]
        right = None if finding.place is None else self.of_other[finding.place.offset]
        either = left or right
        assert either is not None, "a finding is of a record of either side"
        return _Example(either.source, finding.kind.value, self._example_text(finding.kind, either, left, right))

    def _example_text(self, kind: Kind, either: Expected, left: Expected | None, right: Expected | None) -> str:
        of = f"{either.source}, key {shown(either.key)}, to {self.topic}"
        if left is None or right is None:
            return f"only {self.one if right is None else self.other}: {of}, {_content(either)}"
        elsewhere = "" if right.source == left.source else f" of {right.source}"
        if kind is Kind.REORDERED:
            return f"another order: {of}, {_content(left)}: {self.other} makes it elsewhere{elsewhere}"
        return (
            f"another value: {of}: {self.one} makes {_content(left)}, {self.other} makes {_content(right)}{elsewhere}"
        )


def _by_input(each: Expected) -> tuple[int, str]:
    return each.source.offset, each.path


def _certain(key: bytes | None) -> bytes:
    """Records without a key have an order here, that of the input, as all others: so they are given one."""
    return b"null" if key is None else b"key:" + key


def _content(each: Expected) -> str:
    headers = ", ".join(f"{name}={shown(value)}" for name, value in each.headers)
    return f"value {shown(each.value)}" + (f" with headers {headers}" if headers else "")
