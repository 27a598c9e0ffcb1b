"""A report in the forms that scripts read; tables for people are the command line's."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from twopc.kafka.place import Place
from twopc.verify.findings import Finding, Kind, Verdict
from twopc.verify.history import Outcome
from twopc.verify.run import Report


def as_json(report: Report) -> dict[str, Any]:
    """Return the report as JSON values."""
    return {
        "held": report.held,
        "records_in": report.records_in,
        "elsewhere": report.elsewhere,
        "transactions": {outcome.value: report.transactions.get(outcome, 0) for outcome in Outcome},
        "seconds": round(report.seconds, 3),
        "left_out": list(report.left_out),
        "unseen": list(report.unseen),
        "record_errors": [asdict(error) for error in report.record_errors],
        "topics": [verdict_as_json(verdict) for verdict in report.verdicts],
    }


def verdict_as_json(verdict: Verdict) -> dict[str, Any]:
    """Return what was judged of a topic as data."""
    return {
        "topic": verdict.topic,
        "held": verdict.held,
        "expected": verdict.expected,
        "pending": verdict.pending,
        "found": verdict.found,
        "matched": verdict.matched,
        "unordered_keys": verdict.unordered_keys,
        "counts": {kind.value: verdict.counts.get(kind, 0) for kind in Kind},
        "findings": [finding_as_json(finding) for finding in verdict.findings],
    }


def finding_as_json(finding: Finding) -> dict[str, Any]:
    """Return one record that is wrong as data."""
    return {
        "kind": finding.kind.value,
        "key": finding.key,
        "source": _place(finding.source),
        "place": _place(finding.place),
        "expected": finding.expected,
        "found": finding.found,
        "detail": finding.detail,
    }


def _place(place: Place | None) -> dict[str, Any] | None:
    if place is None:
        return None
    partition, offset = place
    return {"topic": partition.topic, "partition": partition.partition, "offset": offset}
