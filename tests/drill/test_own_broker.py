"""A fault drill on a Kafka of its own: what only there can be done, the broker's own clock, and a full disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from twopc.config import RunSettings
from twopc.drill.fault_drill import fault_drill
from twopc.drill.fault_drill_plan import FaultDrillPlan
from twopc.drill.faults import Kind
from twopc.drill.load import Load
from twopc.drill.verdict import CheckVerdict

pytestmark = pytest.mark.drill

JOB_FILE = str(Path(__file__).parents[1] / "drill" / "drilled_job.py")
SEED, FAULTS = 72, (Kind.FILL_SNAPSHOT_DISK, Kind.EXPIRE_TRANSACTION)


@pytest.mark.proof
def test_a_declined_snapshot_and_an_expired_transaction_are_told_by_name_and_cost_no_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forgotten_loads: None
) -> None:
    monkeypatch.setenv("DRILLED_JOB", "own-broker")
    plan = FaultDrillPlan(JOB_FILE, len(FAULTS), SEED, Load(records=2_000), scratch_dir=tmp_path)
    result = fault_drill(plan, RunSettings(checkpoint_interval_ms=200), say=lambda _: None)
    assert {check.verdict for check in result.checks} == {CheckVerdict.HELD}, result
    assert all(kind.value in str(result.settings["plan"]) for kind in FAULTS)
    told = [moment.text for moment in result.timeline]
    assert any("declined: the snapshot of subtask" in text for text in told)
    assert any("CompleteAbort: it was aborted, by its time-out" in text for text in told)
    assert list(tmp_path.iterdir()) == []
