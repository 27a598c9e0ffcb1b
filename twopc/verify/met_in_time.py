"""Topics whose records depend on the order in which several inputs met: what holds, holds; what differs proves nothing.

A run takes the earlier record first as long as each is there when its turn comes. An output that is what the input
makes in this order is right. One that is not may be of a run that met them in another. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from twopc.errors import NotJudged
from twopc.verify.findings import Kind, Verdict
from twopc.verify.paths import Paths

IN_ANY_ORDER = {Kind.ABORTED}
"""What is broken in whichever order inputs met."""


def by_time(paths: Paths, topics: Iterable[str]) -> dict[str, str]:
    """Return which of these output topics depend on the order in which inputs met, and which inputs those are."""
    found: dict[str, str] = {}
    for node in paths.sinks.values():
        if met := paths.by_time.get(node.operator):
            # One that chooses a topic for each record may write to any.
            found |= dict.fromkeys(node.operation.outputs or topics, met)
    return {topic: met for topic, met in found.items() if topic in topics}


def decided(verdicts: Sequence[Verdict], met: Mapping[str, str]) -> tuple[tuple[Verdict, ...], tuple[str, ...]]:
    """Return the verdicts that prove something, and of the others why they don't.

    Raises NotJudged, which says that, where nothing else is wrong: an output that was not judged has not held.
    """
    open_ = {verdict.topic for verdict in verdicts if verdict.topic in met and verdict.counts.keys() - IN_ANY_ORDER}
    reasons = tuple(_undecided(verdict, met[verdict.topic]) for verdict in verdicts if verdict.topic in open_)
    rest = tuple(verdict for verdict in verdicts if verdict.topic not in open_)
    if reasons and all(each.held for each in rest):
        raise NotJudged("; ".join(reasons))
    return rest, reasons


def _undecided(verdict: Verdict, met: str) -> str:
    records = sum(verdict.counts.values())
    return (
        f"topic {verdict.topic!r} is not judged: it is made of {met}, which meet in the order of their times only "
        f"where each record was there when its turn came. In that order {records:,} records are not what the input "
        f"makes, the first: {verdict.findings[0]}. A run over input that is there from its begin has that order, as "
        "a drill has: twopc drill"
    )
