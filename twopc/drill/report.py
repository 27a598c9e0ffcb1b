"""A drill's result as text and as JUnit XML. Pure."""

from __future__ import annotations

from xml.etree import ElementTree as Xml

from twopc.drill.verdict import Check, CheckVerdict, DrillResult

FINDINGS_SHOWN = 20

_OUTCOMES = {CheckVerdict.BROKEN: "failure", CheckVerdict.MISSED: "error", CheckVerdict.NOT_JUDGED: "skipped"}
"""JUnit's words; it has none for what held."""


def text(result: DrillResult) -> str:
    """Return the report of a terminal."""
    width = max(len(check.name) for check in result.checks)
    verdicts = max(len(verdict.value) for verdict in CheckVerdict)
    lines = [f"{result.drill} drill of job {result.job}, {result.subject}: {summary(result)}"]
    for check in result.checks:
        lines.append(f"  {check.name:<{width}}  {check.verdict.value:<{verdicts}}  {check.text}")
        lines += [f"  {'':<{width}}  - {finding}" for finding in _shown(check)]
    wide = max((len(name) for name in result.figures), default=0)
    lines += [f"  {name:<{wide}}  {_number(value)}" for name, value in result.figures.items()]
    lines.append(f"  began {result.began}")
    lines += [f"  {name}: {value}" for name, value in result.settings.items()]
    return "\n".join(lines)


def summary(result: DrillResult) -> str:
    """Return the outcome in a few words."""
    for verdict in (CheckVerdict.BROKEN, CheckVerdict.MISSED):
        if names := result.named(verdict):
            return f"{verdict.value.upper()}: {', '.join(names)}"
    left = len(result.named(CheckVerdict.NOT_JUDGED))
    return "all held" if not left else f"held, {left} not judged"


def junit(result: DrillResult) -> str:
    """Return one test case for each check."""
    suite = Xml.Element(
        "testsuite",
        name=f"twopc drill: {result.drill}",
        tests=str(len(result.checks)),
        failures=str(len(result.named(CheckVerdict.BROKEN))),
        errors=str(len(result.named(CheckVerdict.MISSED))),
        skipped=str(len(result.named(CheckVerdict.NOT_JUDGED))),
        time=f"{result.seconds:.3f}",
    )
    properties = Xml.SubElement(suite, "properties")
    for name, value in {"subject": result.subject, "began": result.began, **result.settings}.items():
        Xml.SubElement(properties, "property", name=name, value=_plain(str(value)))
    for check in result.checks:
        case = Xml.SubElement(suite, "testcase", classname=f"{result.drill}.{result.job}", name=check.name)
        outcome = _OUTCOMES.get(check.verdict)
        if outcome is not None:
            Xml.SubElement(case, outcome, message=_plain(check.text)).text = _plain("\n".join(check.findings))
    return Xml.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def junit_of_failure(drill: str, error: str) -> str:
    """Return the report of a drill that could not run: one test case, with an error."""
    suite = Xml.Element("testsuite", name=f"twopc drill: {drill}", tests="1", failures="0", errors="1", skipped="0")
    case = Xml.SubElement(suite, "testcase", classname=drill, name="the drill runs")
    Xml.SubElement(case, "error", message=_plain(error)).text = _plain(error)
    return Xml.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _shown(check: Check) -> list[str]:
    rest = len(check.findings) - FINDINGS_SHOWN
    return [*check.findings[:FINDINGS_SHOWN], *([f"and {rest} more"] if rest > 0 else [])]


def _number(value: float | None) -> str:
    if value is None:
        return "not measured"
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"


def _plain(raw: str) -> str:
    """XML has no control characters."""
    return "".join(each if each.isprintable() or each == "\n" else " " for each in raw)
