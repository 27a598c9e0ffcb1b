"""verify and drill of a job with dead letters: these are left out by name, and all other output is judged."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pytest

from tests.drill.drilled import checks
from tests.jobs.cli import CommandResult, twopc
from twopc.checkpoints.catalog import read_job
from twopc.storage.local import LocalStore
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, produce, read_topic

pytestmark = [pytest.mark.broker, pytest.mark.proof]

JOB_FILE = str(Path(__file__).with_name("dead_letters_job.py"))
LEFT_OUT = "dead letters hold stack traces, which no replay has the same"


class Real:
    """A job that has run twice, and the checkpoint between."""

    def __init__(self, broker: Broker, folder: Path) -> None:
        self.servers, self.name = broker.bootstrap_servers, f"dead-{uuid.uuid4().hex[:6]}"
        for suffix in ("in", "out", "dead"):
            create_topic(self.servers, f"{self.name}-{suffix}", 2)
        self.checkpoints = ("--checkpoint-dir", str(folder / "checkpoints"))
        for first in (0, 300):
            records = (Write(b"%d" % number, key=b"k%d" % (number % 7)) for number in range(first, first + 300))
            produce(self.servers, f"{self.name}-in", records)
            ran = self.command("run", "--until-end", "--checkpoint-interval", "200ms", "--checkpoints-retained", "50")
            assert ran.code == 0, ran.err
            if not first:
                chosen = read_job(LocalStore(folder / "checkpoints"), self.name).completed[-1].checkpoint_id
        self.chosen = str(chosen)

    def command(self, name: str, *more: str) -> CommandResult:
        where = ("-b", self.servers, "--host", "process", "-p", "2", *self.checkpoints)
        return twopc(name, JOB_FILE, *where, "-o", "json", *more, DRILLED_JOB=self.name)

    def verify(self) -> CommandResult:
        return twopc("verify", "--map", JOB_FILE, "-b", self.servers, "-o", "json", DRILLED_JOB=self.name)


@pytest.fixture
def real(broker: Broker, tmp_path: Path) -> Real:
    return Real(broker, tmp_path)


def test_a_drill_replays_the_output_and_names_the_dead_letters_that_it_leaves_out(real: Real) -> None:
    done = real.command("drill", "--from", real.chosen)
    held = checks(done)
    assert {each["verdict"] for each in held.values()} == {"held"}, done.out
    assert LEFT_OUT in held["replay"]["text"]
    assert json.loads(done.out)["figures"]["records compared"] == 270


def test_verify_judges_the_output_names_the_dead_letters_and_finds_a_record_too_many(real: Real) -> None:
    told = real.verify()
    assert told.code == 0, told.out + told.err
    assert LEFT_OUT in told.out
    assert len(read_topic(real.servers, f"{real.name}-dead")) == 60
    produce(real.servers, f"{real.name}-out", [Write(b"7:1", key=b"k0")])
    assert real.verify().code == 1
