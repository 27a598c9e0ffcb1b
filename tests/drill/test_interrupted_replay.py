"""A restore drill kills its replay once, in the middle: what a function hides from its state is found out."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.drill.drilled import checks
from tests.jobs.cli import CommandResult, twopc
from twopc.checkpoints.catalog import read_job
from twopc.storage.local import LocalStore
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, produce

pytestmark = [pytest.mark.broker, pytest.mark.xdist_group("interrupted replay")]

JOB_FILE = str(Path(__file__).with_name("hidden_job.py"))

Drill = Callable[..., CommandResult]


@pytest.fixture(scope="module")
def drill(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Drill:
    """Drills the first checkpoint of a job that has read 300 records since; one subtask, one partition."""
    folder, servers, name = (
        tmp_path_factory.mktemp("hidden"),
        broker.bootstrap_servers,
        f"hidden-{uuid.uuid4().hex[:6]}",
    )
    for suffix in ("in", "out"):
        create_topic(servers, f"{name}-{suffix}")
    where = (JOB_FILE, "-b", servers, "--host", "process", "-p", "1", "--checkpoint-dir", str(folder / "checkpoints"))
    common = (*where, "--checkpoint-interval", "200ms")
    for first in (0, 300):
        produce(servers, f"{name}-in", [Write(b"%d" % n, key=b"k%d" % (n % 7)) for n in range(first, first + 300)])
        ran = twopc("run", *common, "--until-end", "--checkpoints-retained", "50", HIDDEN_JOB=name)
        assert ran.code == 0, ran.err
        if not first:
            chosen = read_job(LocalStore(folder / "checkpoints"), name).completed[-1].checkpoint_id
    return lambda *more: twopc("drill", *common, "--from", str(chosen), "-o", "json", *more, HIDDEN_JOB=name)


def test_a_counter_that_is_in_no_state_breaks_the_replay_and_is_told_of(drill: Drill) -> None:
    done = drill()
    replay = checks(done)["replay"]
    assert (done.code, replay["verdict"]) == (1, "broken"), done.err
    assert "150 disagrees" in replay["text"]
    assert "a function that keeps something outside its state does not get it back" in replay["text"]


@pytest.mark.proof
def test_without_the_kill_it_passes_as_it_would_if_nothing_ever_failed(drill: Drill) -> None:
    replay = checks(drill("--no-interrupt"))["replay"]
    assert (replay["verdict"], "it was not interrupted" in replay["text"]) == ("held", True)


def test_how_long_the_run_took_to_come_back_from_the_kill_is_told(drill: Drill) -> None:
    figures = json.loads(drill().out)["figures"]
    assert figures["restored after the kill, s"] > 0
    assert figures["records replayed"] == figures["records to replay"] == 300


def test_a_drill_that_has_nothing_to_replay_has_not_held(drill: Drill) -> None:
    done = drill("--from", "latest")
    replay = checks(done)["replay"]
    assert (done.code, replay["verdict"]) == (2, "missed"), done.err
    assert "Name an earlier checkpoint (--from), or give the job more input" in replay["text"]
