"""Compares what was written with what the input makes: of a scratch output the whole, of a real one the end."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from twopc.drill.bounds import Bounds, Side
from twopc.drill.verdict import Check, CheckVerdict
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.verify.alignment import align
from twopc.verify.findings import Kind, Verdict, merged
from twopc.verify.history import Expected, Found, Outcome, identity

Ends = Mapping[TopicPartition, Position]
EVERYWHERE_OPEN = Bounds()
SLACK = 100


def required_of(expected: Iterable[Expected], required: Ends) -> int:
    """Return how many of the records must be there."""
    return sum(_is_due(output, required) for output in expected)


@dataclass(frozen=True, slots=True)
class OutputSinceCheckpoint:
    """The output that is taken for written since a checkpoint.

    `by_value` is how many records only their values tell from what stood there before. `alike` are so many that were
    left out for that, and look like one that is expected: a repetition looks so, and so does a value that comes again.
    """

    found: Sequence[Found]
    by_value: int = 0
    alike: int = 0


def since_checkpoint(
    expected: Sequence[Expected], tail: Sequence[Found], required: Ends, bounds: Bounds = EVERYWHERE_OPEN
) -> OutputSinceCheckpoint:
    """Leave out of the end of an output what stood there before the checkpoint, key by key.

    Where `bounds` leave it open, what was written since must be the end of what is there, and is found from the end;
    of a key whose records have no order of their own, those are taken that are expected. Records of a key that the
    input since the checkpoint doesn't make are from before, as far as can be told. What was not committed stays in,
    wherever it stands: nobody should see it.
    """
    by_key, places = defaultdict[bytes | None, list[Expected]](list), defaultdict[bytes | None, list[int]](list)
    for output in expected:
        by_key[output.key].append(output)
    sources = {key: {output.source.partition for output in made} for key, made in by_key.items()}
    lanes = {key: {(output.source.partition, output.path) for output in made} for key, made in by_key.items()}
    later, by_value = set(), set()
    for index, found in enumerate(tail):
        if found.key not in by_key or _is_aborted(found):
            continue
        side = bounds.side(sources[found.key], found)
        if side is not Side.BEFORE:
            places[found.key].append(index)
        if side is Side.AFTER:
            later.add(index)
        elif side is Side.OPEN:
            by_value.add(index)
    chosen, alike = set(later), 0
    for key, indices in places.items():
        identities = [identity(tail[index].value, tail[index].headers) for index in indices]
        wanted = [identity(output.value, output.headers) for output in by_key[key]]
        if key is None or len(lanes[key]) > 1:
            taken = _matching(wanted, identities, [index in later for index in indices])
        else:
            start = begins_at(wanted, required_of(by_key[key], required), identities)
            taken = [place >= start for place in range(len(indices))]
        chosen |= {index for index, is_taken in zip(indices, taken, strict=True) if is_taken}
        known = set(wanted)
        left = zip(indices, identities, strict=True)
        alike += sum(1 for index, each in left if index not in chosen and each in known)
    return OutputSinceCheckpoint(
        [found for index, found in enumerate(tail) if index in chosen or _is_aborted(found)], len(by_value), alike
    )


def _is_aborted(found: Found) -> bool:
    return found.transaction is not None and found.transaction.outcome is not Outcome.COMMITTED


def _matching(expected: Sequence[int], found: Sequence[int], later: Sequence[bool]) -> list[bool]:
    """Which of those found are expected, the last ones first; those that are surely later come before all others."""
    left = Counter(expected)
    left.subtract(each for each, is_later in zip(found, later, strict=True) if is_later)
    chosen = []
    for each, is_later in zip(reversed(found), reversed(later), strict=True):
        chosen.append(is_later or left[each] > 0)
        left[each] -= not is_later
    return chosen[::-1]


def _is_due(each: Expected, required: Ends) -> bool:
    return each.source.offset < required[each.source.partition]


@dataclass(frozen=True, slots=True)
class TopicVerdict:
    """The verdict on one output, and what its sinks do not promise to keep out."""

    verdict: Verdict
    allowed: frozenset[Kind] = frozenset()

    @property
    def wrong(self) -> list[str]:
        return [str(finding) for finding in self.verdict.findings if finding.kind not in self.allowed]


def check_of(name: str, every: Sequence[TopicVerdict], held: str) -> Check:
    """Return the verdicts on outputs as one check; what a sink does not promise to keep out is told."""
    counts = merged("", [verdict.verdict for verdict in every]).counts
    listing = ", ".join(f"{count} {kind.value}" for kind, count in counts.items())
    findings = [finding for verdict in every for finding in verdict.wrong]
    if listing and not findings:
        return Check(name, CheckVerdict.HELD, f"{held}; besides {listing}, which the sink does not rule out")
    return Check.of(name, findings, held=held, broken=f"of the output: {listing}")


def begins_at(expected: Sequence[int], required: int, found: Sequence[int]) -> int:
    """Return from which record of `found` on the records of a key are those that are expected.

    `expected` and `found` are identities, in order. At least `required` of those expected must be there, more may be.
    Where no beginning of what is expected is the end of what is found, the most likely place is returned: something is
    wrong then, and it takes the records from there on to say what.
    """
    for count in range(min(len(expected), len(found)), required - 1, -1):
        if _ends_with(found, expected, count):
            return len(found) - count
    start = max(0, len(found) - len(expected) - SLACK)
    pairs = align(expected, found[start:])
    return start + pairs[0][1] if pairs else len(found)


def _ends_with(found: Sequence[int], expected: Sequence[int], count: int) -> bool:
    """Whether the last `count` found are the first `count` expected; the ends first, as they mostly tell."""
    if count == 0:
        return True
    if found[-1] != expected[count - 1] or found[-count] != expected[0]:
        return False
    return list(found[-count:]) == list(expected[:count])
