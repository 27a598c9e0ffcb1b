"""Helpers for tests of drills: what each check said, what a drill left behind, and a job that lives through faults."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from tests.jobs.cli import CommandResult
from twopc.config import RunSettings
from twopc.drill.fault_drill import fault_drill
from twopc.drill.fault_drill_plan import FaultDrillPlan
from twopc.drill.load import Load
from twopc.drill.scratch_job import PREFIX
from twopc.drill.verdict import CheckVerdict, DrillResult

SEED = 3
"""Of three faults: the coordinator is killed, a transaction is aborted, a disk is full under a snapshot."""


def checks(done: CommandResult) -> Mapping[str, Any]:
    """Return what a drill put out as JSON, by the name of the check."""
    assert done.out, done.err
    return {each["name"]: each for each in json.loads(done.out)["checks"]}


def scratch_on(servers: str) -> list[str]:
    """Return the topics and groups of drills that are still there."""
    admin = AdminClient({"bootstrap.servers": servers})
    groups = [each.group_id for each in admin.list_consumer_groups().result(60).valid]
    return [name for name in (*admin.list_topics(timeout=60).topics, *groups) if name.startswith(PREFIX)]


def drilled_with_faults(servers: str, job_file: str, faults: int, records: int, folder: Path) -> DrillResult:
    """Drill the job of a file that takes its name from DRILLED_JOB; its scratch files go to this folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRILLED_JOB", f"faulty-{uuid.uuid4().hex[:6]}")
        patch.setattr("twopc.loader.job_loader._folders", set())
        plan = FaultDrillPlan(job_file, faults, SEED, Load(records=records), scratch_dir=folder)
        settings = RunSettings(bootstrap_servers=servers, checkpoint_interval_ms=200)
        return fault_drill(plan, settings, say=lambda _: None)


def not_held(result: DrillResult) -> str:
    """Return what the checks of a fault drill that did not hold said, with all that happened; empty where all held."""
    names = ("finished", "faults", "transactions", "output", "state")
    assert tuple(each.name for each in result.checks) == names
    if all(each.verdict is CheckVerdict.HELD for each in result.checks):
        return ""
    checks = (f"{each.name}: {each.verdict.value}: {each.text}: {each.findings}" for each in result.checks)
    return "\n".join((*checks, *map(str, result.timeline)))
