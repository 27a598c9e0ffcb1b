"""The audit of a run's leaks, seen from outside: by the broker's admin requests, the process table and the folders.

    findings = look(Place(job="orders", bootstrap_servers=servers, topics=("out",), checkpoint_dir=folder))
    assert not findings, report(findings)

Nothing here asks the code under test, and nothing here changes what it looks at: it may be used beside a running job,
which then of course has open transactions and processes.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from tests.leak_audit.brokers import findings_on_brokers
from tests.leak_audit.findings import Finding, Place, Problem
from tests.leak_audit.folders import findings_in_folders
from tests.leak_audit.processes import findings_among_processes

__all__ = ["Finding", "Place", "Problem", "look", "report", "wait_until_clean"]

PATIENCE_SECONDS = 120.0
_PAUSE_SECONDS = 0.1


def look(place: Place) -> list[Finding]:
    """Return everything that should not be there once the job has ended, in a stable order."""
    found = [*findings_among_processes(place), *findings_in_folders(place), *findings_on_brokers(place)]
    return sorted(found, key=lambda finding: (finding.problem.name, finding.where, finding.what))


def wait_until_clean(place: Place, seconds: float = PATIENCE_SECONDS) -> list[Finding]:
    """Look until nothing is found, or the time is up; return what was found last.

    A broker writes the markers of a decided transaction a little after it has said so, and processes take time to end.
    """
    deadline = time.monotonic() + seconds
    while (found := look(place)) and time.monotonic() < deadline:
        time.sleep(_PAUSE_SECONDS)
    return found


def report(findings: Sequence[Finding]) -> str:
    """Return the findings as lines for a person."""
    return "\n".join(str(finding) for finding in findings) or "nothing was left behind"
