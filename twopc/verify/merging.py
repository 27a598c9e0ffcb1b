"""One verdict on several topics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from twopc.verify.findings import Kind, Verdict


def merged(name: str, verdicts: Sequence[Verdict]) -> Verdict:
    """Add verdicts up, under a name of their own."""
    counts = Counter[Kind]()
    for each in verdicts:
        counts.update(each.counts)
    return Verdict(
        topic=name,
        expected=sum(each.expected for each in verdicts),
        pending=sum(each.pending for each in verdicts),
        found=sum(each.found for each in verdicts),
        matched=sum(each.matched for each in verdicts),
        counts=dict(counts),
        findings=tuple(finding for each in verdicts for finding in each.findings),
        unordered_keys=sum(each.unordered_keys for each in verdicts),
    )
