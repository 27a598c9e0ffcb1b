"""What is told of a verdict: values that were expected, JSON, JUnit's XML; and what a plan refuses."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.verify.forging import SOURCES, made, verdict_on
from twopc import Job, KafkaSink, KafkaSource, Record
from twopc.errors import ConfigurationError
from twopc.graph import JobDefinition
from twopc.kafka.place import Place
from twopc.verify import Kind, Verdict
from twopc.verify.findings import shown
from twopc.verify.history import Expected
from twopc.verify.junit import junit
from twopc.verify.plan import VerifyPlan, plan_of
from twopc.verify.report import as_json
from twopc.verify.run import Report
from twopc.verify.samples import Samples

EXPECTED = [made(0, n, b"k", b"value %d" % n) for n in range(20)]


def report(verdict: Verdict) -> Report:
    return Report((verdict,), records_in=20, elsewhere=0, seconds=1.5)


def nothing_found() -> Verdict:
    return verdict_on(EXPECTED, [])


def job() -> JobDefinition:
    return Job("upper").source(KafkaSource("in")).map(bytes.upper).sink(KafkaSink("out")).definition()


def test_the_values_that_were_expected_are_brought_back() -> None:
    verdict = nothing_found()
    samples = Samples([verdict])
    for each in EXPECTED:
        samples.take("out", each)
    assert [each.expected for each in samples.filled(verdict)] == ["'value 0'", "'value 1'", "'value 2'"]


def test_the_input_is_gone_through_again_only_as_far_as_needed() -> None:
    samples = Samples([nothing_found()])
    taken = 0
    for each in EXPECTED:
        taken += 1
        samples.take("out", each)
        if samples.complete:
            break
    assert taken == 4
    assert not Samples([verdict_on([], [])]).wanted


def test_of_several_records_of_one_input_record_all_are_named() -> None:
    expected = [Expected(Place(SOURCES[0], 0), b"k", value) for value in (b"a", b"b")]
    verdict = verdict_on(expected, [])
    samples = Samples([verdict])
    for each in expected:
        samples.take("out", each)
    assert {each.expected for each in samples.filled(verdict)} == {"'a' or 'b'"}


def test_long_values_are_shortened() -> None:
    assert shown(b"x" * 100) == "'" + "x" * 64 + "'... (100 bytes)"
    assert shown(None) == "null"


def test_junit_has_a_case_for_each_promise_and_a_failure_for_each_broken_one() -> None:
    tree = ElementTree.fromstring(junit(report(nothing_found())))
    suite = tree.find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures")) == ("7", "1")
    [failed] = [case for case in suite.iter("testcase") if case.find("failure") is not None]
    assert failed.get("name") == "no record is lost"
    assert "made of in[0]@0, key 'k'" in (failed.findtext("failure") or "")


def test_keys_of_any_bytes_make_no_broken_xml() -> None:
    expected = [replace(each, key=b'\x00<&"\xff') for each in EXPECTED]
    ElementTree.fromstring(junit(report(verdict_on(expected, []))))


def test_json_has_every_count_and_the_first_findings() -> None:
    told = json.loads(json.dumps(as_json(report(nothing_found()))))
    [topic] = told["topics"]
    assert (told["held"], topic["expected"], topic["found"]) == (False, 20, 0)
    assert topic["counts"] == {kind.value: 20 if kind is Kind.LOST else 0 for kind in Kind}
    assert topic["findings"][0]["source"] == {"topic": "in", "partition": 0, "offset": 0}


def test_a_plan_takes_the_topics_of_the_job_unless_others_are_named() -> None:
    plan = plan_of(job(), (), (), "127.0.0.1:1")
    assert (plan.topics, [*plan.outputs], plan.group("source-1")) == (("in",), ["out"], "upper")
    plan = plan_of(job(), ["scratch-in"], ["scratch-out"], "127.0.0.1:1")
    assert (plan.topics, [*plan.outputs]) == (("scratch-in",), ["scratch-out"])


def test_without_a_job_the_output_is_a_copy() -> None:
    plan = plan_of(None, ["a"], ["b"], "127.0.0.1:1")
    assert (plan.topics, [*plan.outputs], len(plan.paths.nodes)) == (("a",), ["b"], 2)


def chosen(record: Record) -> str:
    return str(record.key)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: plan_of(None, ["a"], [], "s:1"), "one --output, its copy"),
        (lambda: plan_of(job(), (), (), ""), "--bootstrap-servers"),
        (lambda: plan_of(job(), (), ["a", "b"], "s:1"), "writes to one topic"),
        (lambda: plan_of(job().replaced({"sink-1": KafkaSink(chosen)}), (), (), "s:1"), "name them with --output"),
        (lambda: plan_of(job(), (), (), "s:1", examples=0), "--examples"),
        (lambda: plan_of(job(), (), (), "s:1", running=True, drained=True), "--drained or --running"),
    ],
)
def test_a_plan_that_can_not_work_is_refused(make: object, said: str) -> None:
    assert callable(make)
    with pytest.raises(ConfigurationError, match=said):
        make()


def test_only_what_gives_access_is_taken_over_from_the_sink() -> None:
    properties = {"security.protocol": "SSL", "ssl.ca.location": "ca.pem", "linger.ms": 5}
    definition = job().replaced({"sink-1": KafkaSink("out", properties=properties)})
    plan: VerifyPlan = plan_of(definition, (), (), "s:1")
    assert plan.outputs["out"].properties == {
        "security.protocol": "SSL",
        "ssl.ca.location": str(Path("ca.pem").absolute()),
    }
