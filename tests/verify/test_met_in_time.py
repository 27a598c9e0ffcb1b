"""Outputs that depend on the order in which inputs met: one that holds is right, one that differs is not judged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from twopc import Job, KafkaSink, KafkaSource
from twopc.errors import NotJudged
from twopc.verify.findings import Finding, Kind, Verdict
from twopc.verify.met_in_time import by_time, decided
from twopc.verify.paths import Paths

MET = {"joined": "orders, customers"}


def verdict(topic: str, counts: Mapping[Kind, int]) -> Verdict:
    findings = tuple(Finding(kind, f"key-{kind.value}") for kind in counts)
    return Verdict(topic, expected=9, pending=0, found=9, matched=9, counts=counts, findings=findings)


def test_what_holds_in_the_order_of_times_has_held() -> None:
    right = (verdict("joined", {}), verdict("copy", {}))
    assert decided(right, MET) == (right, ())


def test_what_differs_is_not_judged_and_says_with_which_record_it_begins() -> None:
    with pytest.raises(
        NotJudged, match=r"topic 'joined' is not judged: it is made of orders, customers.*3 records.*lost"
    ):
        decided([verdict("joined", {Kind.LOST: 3}), verdict("copy", {})], MET)


def test_what_is_broken_elsewhere_is_told_beside_it() -> None:
    broken = verdict("copy", {Kind.LOST: 1})
    kept, left_out = decided([verdict("joined", {Kind.DISAGREES: 1}), broken], MET)
    assert (kept, len(left_out)) == ((broken,), 1)


def test_a_record_of_an_aborted_transaction_is_broken_in_whichever_order_inputs_met() -> None:
    broken = (verdict("joined", {Kind.ABORTED: 1}),)
    assert decided(broken, MET) == (broken, ())


def count(total: Any, value: Any) -> tuple[Any, Any]:
    return (total or 0) + 1, value


def test_a_sink_that_chooses_its_topics_may_write_what_met_to_any() -> None:
    job = Job("job")
    a, b = job.source(KafkaSource("a"), name="a"), job.source(KafkaSource("b"), name="b")
    a.sink(KafkaSink("copy"), name="copy")
    a.merge(b).stateful_map(count, name="count").sink(KafkaSink("met"), name="met")
    assert by_time(Paths.of(job.definition()), ["copy", "met"]) == {"met": "a, b"}
    a.merge(b).stateful_map(count, name="more").sink(KafkaSink(lambda record: "any"), name="any")
    assert by_time(Paths.of(job.definition()), ["copy", "met"]).keys() == {"copy", "met"}
