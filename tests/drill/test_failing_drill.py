"""A fault drill of a job that breaks its promises says so, each by its name."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.drill.drilled import checks as checks_of
from tests.jobs.cli import CommandResult, twopc
from twopc.testing.broker import Broker

pytestmark = [pytest.mark.broker, pytest.mark.proof, pytest.mark.xdist_group("failing drill")]

JOB_FILE = str(Path(__file__).with_name("broken_job.py"))
RECORDS, REPEATED = 1_000, 11
"""Of two partitions with about half the records each, one record in a hundred."""


@pytest.fixture(scope="module")
def drilled(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> CommandResult:
    folder = tmp_path_factory.mktemp("failing")
    return twopc(
        *("drill", JOB_FILE, "-b", broker.bootstrap_servers, "--faults", "1", "--seed", "0", "--records", str(RECORDS)),
        *("--scratch-dir", str(folder), "-o", "json", "--quiet"),
        BROKEN_JOB=f"broken-{uuid.uuid4().hex[:6]}",
    )


@pytest.fixture(scope="module")
def checks(drilled: CommandResult) -> Mapping[str, Any]:
    assert drilled.code == 1, drilled.out + drilled.err
    return checks_of(drilled)


def test_what_is_missing_and_what_is_there_twice_is_named(checks: Mapping[str, Any]) -> None:
    output = checks["output"]
    assert output["verdict"] == "broken"
    assert {finding.partition(":")[0] for finding in output["findings"]} <= {"torn", "lost", "duplicated"}
    assert f"{REPEATED} duplicated" in output["text"]


def test_what_is_missing_was_torn_from_its_transaction(checks: Mapping[str, Any]) -> None:
    torn = [finding for finding in checks["output"]["findings"] if finding.startswith("torn")]
    assert all("@" in finding and "key" in finding for finding in torn)
    assert torn


def test_state_that_the_input_does_not_make_is_named(checks: Mapping[str, Any]) -> None:
    assert (checks["state"]["verdict"], checks["finished"]["verdict"]) == ("broken", "held")
    assert checks["state"]["findings"][0].startswith("state: ")
