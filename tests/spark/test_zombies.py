"""Workers that sleep through the end of their attempt and wake beside a newer one: they find themselves fenced.

Whatever they still hold in their hands, nothing of it is seen twice, nothing is lost, no transaction stays open, and
they end by themselves.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.zombies import WAIT_SECONDS, ZombieJob, wait_until_gone, wake
from twopc.faults.process import start_coordinator
from twopc.testing.broker import Broker
from twopc.testing.ports import free_port

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]


class Woken(Enum):
    """The moment at which a zombie wakes."""

    BESIDE_THE_NEXT_ATTEMPT = "after a checkpoint of the next attempt"
    AFTER_THE_JOB = "after the job's end"


@dataclass(frozen=True, slots=True)
class Zombie:
    """The place where it sleeps, and the moment at which it wakes."""

    name: str
    crash: str
    woken: Woken = Woken.BESIDE_THE_NEXT_ATTEMPT
    interval: str = "150ms"

    def __str__(self) -> str:
        return f"{self.name}-{self.woken.name.lower()}"


_AT = "checkpoint=3,subtask=0,once={folder}/reached,hold"
_LATE = Woken.AFTER_THE_JOB

ZOMBIES = [
    Zombie("before-it-attaches", "before_restore,subtask=0,once={folder}/reached,hold"),
    Zombie("with-records-in-an-open-transaction", f"before_trigger,{_AT}"),
    Zombie("in-the-middle-of-a-flush", f"in_flush,{_AT}"),
    Zombie("pre-committed-not-acknowledged", f"after_store,{_AT}"),
    Zombie(
        "acknowledged-not-completed",
        f"after_ack,{_AT};before_pre_commit,checkpoint=3,subtask=1,once={{folder}}/other,hold",
    ),
    Zombie("completed-not-committed", f"before_commit,{_AT}"),
    Zombie("in-the-middle-of-a-commit", f"after_end_txn,{_AT}"),
    Zombie("committed-not-reported", f"after_commit,{_AT}"),
    Zombie("at-the-end-of-its-input", "after_pre_commit,subtask=0,once={folder}/reached,hold", interval="1h"),
    Zombie("before-it-attaches", "before_restore,subtask=0,once={folder}/reached,hold", _LATE),
    Zombie("with-records-in-an-open-transaction", f"before_trigger,{_AT}", _LATE),
    Zombie("completed-not-committed", f"before_commit,{_AT}", _LATE),
]


@pytest.fixture
def job(broker: Broker, session: SparkSession, tmp_path: Path, topic: Callable[[], str]) -> ZombieJob:
    return ZombieJob(broker.bootstrap_servers, session, topic(), tmp_path)


@pytest.mark.proof
@pytest.mark.parametrize("zombie", ZOMBIES, ids=str)
def test_a_zombie_finds_itself_fenced(job: ZombieJob, monkeypatch: pytest.MonkeyPatch, zombie: Zombie) -> None:
    late = zombie.woken is Woken.AFTER_THE_JOB
    with job.running(monkeypatch, zombie.crash, checkpoint_interval=zombie.interval) as future:
        sleeper = job.put_to_sleep()
        if not late:
            job.wait_for_checkpoint_of_a_later_attempt()
            wake(sleeper)
            wait_until_gone(sleeper)
        # A starved client may cost an attempt more.
        assert future.result(WAIT_SECONDS).attempts >= 2
    if late:
        wake(sleeper)
        wait_until_gone(sleeper)
    job.judge()


@pytest.mark.proof
def test_a_zombie_is_fenced_by_a_coordinator_that_was_restarted_meanwhile(
    job: ZombieJob, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    port = free_port()
    address = f"127.0.0.1:{port}"
    crash = f"before_commit,{_AT}"
    start = partial(start_coordinator, job.checkpoint_dir, port, os.environ)
    with start(tmp_path / "first.log") as first, job.running(monkeypatch, crash, coordinator=address) as future:
        sleeper = job.put_to_sleep()
        first.kill()
        with start(tmp_path / "second.log"):
            job.wait_for_checkpoint_of_a_later_attempt()
            wake(sleeper)
            wait_until_gone(sleeper)
            # A starved client may cost an attempt more.
            assert future.result(WAIT_SECONDS).attempts >= 2
    job.judge()
