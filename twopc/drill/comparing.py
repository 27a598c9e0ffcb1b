"""Holding what was written against what the input makes: of a scratch output the whole, of a real one the end."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from twopc.drill.tail import begins_at
from twopc.drill.verdict import Check
from twopc.protocol.ids import Position, TopicPartition
from twopc.verify.findings import Verdict
from twopc.verify.history import Expected, Found, Outcome, identity
from twopc.verify.judge import Judge

Ends = Mapping[TopicPartition, Position]


def judged(topic: str, expected: Iterable[Expected], found: Iterable[Found], complete: Ends | None = None) -> Verdict:
    """Judge what was found; all must be there up to `complete`, the end of each input partition unless given."""
    judge = Judge(topic, complete=complete)
    for each in expected:
        judge.expect(each)
    for record in found:
        judge.see(record)
    return judge.finish()


def required_of(expected: Iterable[Expected], required: Ends) -> int:
    """Return how many of the records must be there."""
    return sum(_is_due(each, required) for each in expected)


def since_checkpoint(expected: Sequence[Expected], tail: Sequence[Found], required: Ends) -> list[Found]:
    """Leave out of the end of an output what stood there before the checkpoint, key by key.

    Records of a key that the input since the checkpoint doesn't make are all from before, as far as can be told. Of a
    key whose records have no order of their own, those are taken that are expected. What was not committed stays in,
    wherever it stands: nobody should see it.
    """
    due, sources = Counter[bytes | None](), defaultdict[bytes | None, set[TopicPartition]](set)
    mine, theirs = defaultdict[bytes | None, list[int]](list), defaultdict[bytes | None, list[int]](list)
    for each in expected:
        mine[each.key].append(identity(each.value, each.headers))
        due[each.key] += _is_due(each, required)
        sources[each.key].add(each.source.partition)
    for found in tail:
        if not _is_aborted(found):
            theirs[found.key].append(identity(found.value, found.headers))
    chosen = {
        key: iter(
            _matching(mine[key], theirs[key])
            if key is None or len(sources[key]) > 1
            else _from(begins_at(mine[key], due[key], theirs[key]), len(theirs[key]))
        )
        for key in mine
    }
    return [found for found in tail if _is_aborted(found) or (found.key in chosen and next(chosen[found.key]))]


def _is_aborted(found: Found) -> bool:
    return found.transaction is not None and found.transaction.outcome is not Outcome.COMMITTED


def _from(start: int, size: int) -> list[bool]:
    return [index >= start for index in range(size)]


def _matching(expected: Sequence[int], found: Sequence[int]) -> list[bool]:
    """Which of those found are expected, the last ones first."""
    left = Counter(expected)
    chosen = []
    for each in reversed(found):
        chosen.append(left[each] > 0)
        left[each] -= 1
    return chosen[::-1]


def _is_due(each: Expected, required: Ends) -> bool:
    return each.source.offset < required[each.source.partition]


def check_of(name: str, verdict: Verdict, held: str) -> Check:
    """Return the verdict on an output as a check."""
    counts = ", ".join(f"{count} {kind.value}" for kind, count in verdict.counts.items())
    return Check.of(name, [str(finding) for finding in verdict.findings], held=held, broken=f"of the output: {counts}")
