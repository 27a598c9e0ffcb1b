"""A drill's result, as people and programs get it."""

from __future__ import annotations

import json
from dataclasses import replace
from xml.etree import ElementTree as Xml

import pytest

from twopc.drill import report
from twopc.drill.verdict import Check, CheckVerdict, DrillResult, Exit, Moment

HELD = Check("readable", CheckVerdict.HELD, "it is complete")
BROKEN = Check("output", CheckVerdict.BROKEN, "of the output: 2 lost", ("lost: out[0]@7, key 'a'", "lost: <b>\x00"))
LEFT = Check.not_judged("replay", "an earlier check does not let it")
MISSED = Check("faults", CheckVerdict.MISSED, "1 of 2 faults did not strike", ("missed: the driver is killed at T6",))

RESULT = DrillResult(
    drill="restore",
    job="orders",
    began_ms=1_700_000_000_000,
    seconds=4.25,
    subject="checkpoint 7",
    checks=(HELD, LEFT, BROKEN),
    figures={"restored after, s": 1.5, "records to replay": 12_000.0, "first record after, s": None},
    timeline=(Moment(0.5, "checkpoints", "checkpoint 8 completed <in> 12 ms"),),
)


@pytest.mark.parametrize(
    ("checks", "code"),
    [
        pytest.param((HELD,), Exit.ALL_HELD, id="held"),
        pytest.param((HELD, LEFT), Exit.ALL_HELD, id="not judged breaks nothing"),
        pytest.param((HELD, LEFT, BROKEN), Exit.BROKEN, id="broken"),
        pytest.param((HELD, MISSED), Exit.COULD_NOT_RUN, id="what did not happen proves nothing"),
        pytest.param((BROKEN, MISSED), Exit.BROKEN, id="what is broken counts whatever was missed"),
    ],
)
def test_one_broken_promise_breaks_the_drill(checks: tuple[Check, ...], code: Exit) -> None:
    result = replace(RESULT, checks=checks)
    assert (result.exit_code, result.held) == (code, code is Exit.ALL_HELD)
    assert (result.to_json()["exit_code"], result.to_json()["held"]) == (int(code), code is Exit.ALL_HELD)


def test_what_was_missed_is_an_error_and_is_named_everywhere() -> None:
    result = replace(RESULT, checks=(HELD, MISSED))
    assert report.summary(result) == "MISSED: faults"
    assert MISSED.findings[0] in report.text(result)
    suite = Xml.fromstring(report.junit(result))
    assert (suite.get("errors"), suite.get("failures"), suite.get("skipped")) == ("1", "0", "0")
    (error,) = suite.iter("error")
    assert (error.get("message"), error.text) == (MISSED.text, MISSED.findings[0])


def test_a_check_is_broken_by_any_finding() -> None:
    assert Check.of("a", ["x"], held="fine", broken="not fine") == Check("a", CheckVerdict.BROKEN, "not fine", ("x",))
    assert Check.of("a", [], held="fine", broken="not fine") == Check("a", CheckVerdict.HELD, "fine")


def test_the_text_says_first_what_is_broken() -> None:
    lines = report.text(RESULT).splitlines()
    assert lines[0] == "restore drill of job orders, checkpoint 7: BROKEN: output"


def test_the_text_names_every_check_and_finding() -> None:
    text = report.text(RESULT)
    assert all(word in text for word in ("it is complete", "an earlier check", "lost: out[0]@7, key 'a'", "12,000"))


def test_what_is_not_judged_is_not_called_held() -> None:
    assert report.summary(replace(RESULT, checks=(HELD, LEFT))) == "held, 1 not judged"
    assert report.summary(replace(RESULT, checks=(HELD,))) == "all held"


def test_of_many_findings_the_first_are_shown_and_the_rest_counted() -> None:
    many = Check("output", CheckVerdict.BROKEN, "lost", tuple(f"lost {number}" for number in range(100)))
    assert "and 80 more" in report.text(replace(RESULT, checks=(many,)))


def test_junit_has_a_case_for_each_check() -> None:
    suite = Xml.fromstring(report.junit(RESULT))
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("3", "1", "1")
    assert [(case.get("name"), [child.tag for child in case]) for case in suite.iter("testcase")] == [
        ("readable", []),
        ("replay", ["skipped"]),
        ("output", ["failure"]),
    ]


def test_junit_says_what_plays_the_drill_again() -> None:
    told = Xml.fromstring(report.junit(replace(RESULT, subject="seed 7, 3 faults", settings={"records": 5_000})))
    assert [tuple(each.attrib.values()) for each in told.iter("property")] == [
        ("subject", "seed 7, 3 faults"),
        ("began", "2023-11-14T22:13:20+00:00"),
        ("records", "5000"),
    ]


def test_json_says_whether_all_held_and_is_complete() -> None:
    body = json.loads(json.dumps(RESULT.to_json()))
    assert body["held"] is False
    assert body["checks"][2]["findings"][0] == "lost: out[0]@7, key 'a'"
    assert body["timeline"] == [{"at": 0.5, "kind": "checkpoints", "text": "checkpoint 8 completed <in> 12 ms"}]
