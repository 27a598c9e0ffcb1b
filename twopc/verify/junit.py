"""A report for a build server: a test for each promise and topic, in JUnit's XML."""

from __future__ import annotations

from xml.etree.ElementTree import Element, SubElement, indent, tostring

from twopc.verify.findings import Kind, Verdict
from twopc.verify.run import Report


def junit(report: Report) -> str:
    """Return the file's text. A promise that was broken is a failure, with the first few findings."""
    suites = Element("testsuites", name="twopc verify")
    for verdict in report.verdicts:
        suite = SubElement(
            suites,
            "testsuite",
            name=verdict.topic,
            tests=str(len(Kind)),
            failures=str(len(verdict.counts)),
            errors="0",
            time=f"{report.seconds:.3f}",
        )
        for kind in Kind:
            _add_case(suite, verdict, kind)
    indent(suites)
    return tostring(suites, "unicode", xml_declaration=True) + "\n"


def _add_case(suite: Element, verdict: Verdict, kind: Kind) -> None:
    case = SubElement(suite, "testcase", classname=f"twopc.verify.{verdict.topic}", name=f"no record is {kind.value}")
    if count := verdict.counts.get(kind):
        failure = SubElement(case, "failure", type=kind.value, message=f"{count} records: {kind.meaning}")
        failure.text = "\n".join(str(finding) for finding in verdict.findings if finding.kind is kind)
