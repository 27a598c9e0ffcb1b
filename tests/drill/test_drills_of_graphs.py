"""Restore, fault and version drill of a job of two sources and three sinks; of one the real output isn't known."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.drill.drilled import checks, drilled_with_faults, not_held, scratch_on
from tests.jobs.cli import CommandResult, twopc
from twopc.checkpoints.catalog import read_job
from twopc.storage.local import LocalStore
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, produce

pytestmark = [pytest.mark.broker, pytest.mark.proof]

JOB_FILE = str(Path(__file__).with_name("graph_job.py"))

Drill = Callable[..., CommandResult]


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

    def drill(self, *more: str) -> CommandResult:
        return twopc("drill", *self.common, "--from", self.chosen, "-o", "json", *more, DRILLED_JOB=self.name)


@pytest.fixture(scope="module")
def real(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Real:
    return Real(broker, tmp_path_factory.mktemp("graph"))


def test_a_graph_is_replayed_through_a_kill_and_a_record_too_many_is_not_taken_for_right(real: Real) -> None:
    done = real.drill()
    held = checks(done)
    assert {each["verdict"] for each in held.values()} == {"held"}, done.out
    assert held["replay"]["text"].startswith("600 records replayed, 1,400 written, each exactly once")
    assert f"of {real.name}-all, {real.name}-fives are what the replay makes" in held["output"]["text"]
    assert json.loads(done.out)["figures"]["records compared"] == 800
    assert scratch_on(real.servers) == []

    produce(real.servers, f"{real.name}-fives", [Write(b"599-app", key=b"k%d" % (599 % 7))])
    output = checks(real.drill("--no-interrupt"))["output"]
    # Where nothing tells which side of the checkpoint it stands on, it may be from before, and it says so.
    told = {"broken": "of the output: 1 duplicated", "not judged": "but 1 that stand before them look the same"}
    assert told[output["verdict"]] in output["text"]


def test_what_two_versions_of_a_graph_make_is_compared_topic_by_topic(real: Real, tmp_path: Path) -> None:
    other = tmp_path / "other_graph_job.py"
    other.write_text(Path(JOB_FILE).read_text().replace('startswith(b"5")', 'startswith(b"59")'))
    assert checks(real.drill("--against", JOB_FILE))["output"]["verdict"] == "held"
    output = checks(real.drill("--against", str(other)))["output"]
    assert output["verdict"] == "broken"
    assert all(f"to {real.name}-fives" in finding for finding in output["findings"])


def test_a_graph_lives_through_faults_and_every_topic_and_state_is_judged(broker: Broker, tmp_path: Path) -> None:
    result = drilled_with_faults(broker.bootstrap_servers, JOB_FILE, 2, 2_000, tmp_path)
    assert not not_held(result), not_held(result)
    [output] = [check for check in result.checks if check.name == "output"]
    assert int(output.text.split()[0].replace(",", "")) >= 2_000
    assert "not judged" not in output.text
    assert (scratch_on(broker.bootstrap_servers), list(tmp_path.iterdir())) == ([], [])
