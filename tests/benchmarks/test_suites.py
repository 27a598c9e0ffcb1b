"""What the suites and the sweeps name exists."""

from __future__ import annotations

import pytest
from peers.ours import JOB_FILES, OPERATOR_JOB_FILES
from peers.suites import SUITES
from peers.sweeps import SWEEPS
from peers.system import PROGRAMS
from peers.systems import SYSTEMS
from peers.workloads import WORKLOADS

from twopc.loader.job_loader import load_job


@pytest.mark.parametrize("suite", list(SUITES))
def test_every_system_of_a_suite_can_do_the_job(suite: str) -> None:
    entries = [(case.job, name) for case, names in SUITES[suite].entries for name in names]
    assert [entry for entry in entries if entry[0] not in SYSTEMS[entry[1]].jobs] == []


@pytest.mark.parametrize("job", list(WORKLOADS))
def test_every_workload_has_a_job_of_ours(job: str) -> None:
    assert load_job(str((JOB_FILES | OPERATOR_JOB_FILES)[job])).name


def test_a_job_file_that_a_sweep_names_is_there() -> None:
    named = [option for sweep in SWEEPS.values() for point in sweep.points for option in point.options]
    files = [option for option in named if option.endswith(".py")]
    assert files
    assert [file for file in files if not (PROGRAMS.parents[2] / file).is_file()] == []
