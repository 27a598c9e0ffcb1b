"""Restore, fault and version drill of a job of two sources and three sinks, of which one can't be judged."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.drill.test_restore_drill import scratch_on
from tests.jobs.cli import Finished, twopc
from twopc.checkpoints.catalog import read_job
from twopc.config import RunSettings
from twopc.drill.fault_drill import fault_drill
from twopc.drill.fault_drill_plan import FaultDrillPlan
from twopc.drill.load import Load
from twopc.drill.verdict import CheckVerdict
from twopc.storage.local import LocalStore
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, produce

pytestmark = pytest.mark.broker

JOB_FILE = str(Path(__file__).with_name("graph_job.py"))
SEED = 3

Drill = Callable[..., Finished]


class Real:
    """A real job that has run twice, and the checkpoint between."""

    def __init__(self, broker: Broker, folder: Path) -> None:
        self.servers, self.folder, self.name = broker.bootstrap_servers, folder, f"graph-{uuid.uuid4().hex[:6]}"
        for suffix in ("web", "app", "all", "fives", "met"):
            create_topic(self.servers, f"{self.name}-{suffix}", 2)
        self.common = (
            *(JOB_FILE, "-b", self.servers, "--host", "process", "-p", "2"),
            *("--checkpoint-dir", str(folder / "checkpoints"), "--checkpoint-interval", "200ms"),
        )
        for first in (0, 300):
            for source in ("web", "app"):
                records = [
                    Write(b"%d-%s" % (n, source.encode()), key=b"k%d" % (n % 7)) for n in range(first, first + 300)
                ]
                produce(self.servers, f"{self.name}-{source}", records)
            ran = twopc("run", *self.common, "--until-end", "--checkpoints-retained", "50", DRILLED_JOB=self.name)
            assert ran.code == 0, ran.err
            if not first:
                chosen = read_job(LocalStore(folder / "checkpoints"), self.name).completed[-1].checkpoint_id
        self.chosen = str(chosen)

    def drill(self, *more: str) -> Finished:
        return twopc("drill", *self.common, "--from", self.chosen, "-o", "json", *more, DRILLED_JOB=self.name)


@pytest.fixture(scope="module")
def real(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Real:
    return Real(broker, tmp_path_factory.mktemp("graph"))


def checks(done: Finished) -> Mapping[str, Any]:
    assert done.out, done.err
    return {each["name"]: each for each in json.loads(done.out)["checks"]}


def test_a_graph_is_replayed_through_a_kill_and_a_record_too_many_is_not_taken_for_right(real: Real) -> None:
    done = real.drill()
    held = checks(done)
    assert {each["verdict"] for each in held.values()} == {"held"}, done.out
    assert held["replay"]["said"].startswith("600 records replayed, 800 written, each exactly once")
    assert "what 'met' writes is not judged: 'together' keeps state over the records of" in held["replay"]["said"]
    assert f"of {real.name}-all, {real.name}-fives are what the replay makes" in held["output"]["said"]
    assert json.loads(done.out)["figures"]["records compared"] == 800
    assert scratch_on(real.servers) == []

    produce(real.servers, f"{real.name}-fives", [Write(b"599-app", key=b"k%d" % (599 % 7))])
    output = checks(real.drill("--no-interrupt"))["output"]
    # Where nothing tells which side of the checkpoint it stands on, it may be from before, and it says so.
    told = {"broken": "of the output: 1 duplicated", "not judged": "but 1 that stand before them look the same"}
    assert told[output["verdict"]] in output["said"]


def test_what_two_versions_of_a_graph_make_is_compared_topic_by_topic(real: Real, tmp_path: Path) -> None:
    other = tmp_path / "other_graph_job.py"
    other.write_text(Path(JOB_FILE).read_text().replace('startswith(b"5")', 'startswith(b"59")'))
    assert checks(real.drill("--against", JOB_FILE))["output"]["verdict"] == "held"
    output = checks(real.drill("--against", str(other)))["output"]
    assert output["verdict"] == "broken"
    assert all(f"to {real.name}-fives" in finding for finding in output["findings"])


def test_a_graph_lives_through_faults_and_every_topic_and_state_is_judged(broker: Broker, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRILLED_JOB", f"faulty-{uuid.uuid4().hex[:6]}")
        patch.setattr("twopc.loader.job_loader._folders", set())
        plan = FaultDrillPlan(JOB_FILE, 2, SEED, Load(records=2_000), scratch_dir=tmp_path)
        settings = RunSettings(bootstrap_servers=broker.bootstrap_servers, checkpoint_interval_ms=200)
        result = fault_drill(plan, settings, say=lambda _: None)
    names = ("finished", "faults", "transactions", "output", "state")
    assert {check.name: check.verdict for check in result.checks} == dict.fromkeys(names, CheckVerdict.HELD), result
    [output] = [check for check in result.checks if check.name == "output"]
    assert int(output.said.split()[0].replace(",", "")) >= 2_000
    assert "not judged: what 'met' writes" in output.said
    assert (scratch_on(broker.bootstrap_servers), list(tmp_path.iterdir())) == ([], [])
