"""Makes zombies on Spark: workers that sleep at a named place while their attempt ends and others go on without them.

A worker is held at its crash point and put to sleep (SIGSTOP), and the other worker is killed: so the attempt fails.
The session of these tests doesn't kill Python workers; Spark's own word for it is best effort. The daemon that forked
them lives on: without it the kernel may wake the sleeper with a SIGHUP, and a worker that is an orphan ends by itself.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from tests.counting.finished import FinishedJob
from tests.counting.numbered_input import NumberedInput
from tests.leak_audit import Place, report, wait_until_clean
from twopc import events
from twopc.config import RunSettings
from twopc.driver.run import RunReport, run
from twopc.faults.points import VARIABLE
from twopc.faults.process import await_true
from twopc.loader.job_loader import load_job
from twopc.testing.topics import create_topic, produce

JOB_FILE = Path(__file__).with_name("zombie_job.py")
PARALLELISM = 2
OUTPUT_PARTITIONS = 2
RECORDS = 5_000
KEYS = 14
WAIT_SECONDS = 240.0


class ZombieJob:
    """One job on the shared session, in a thread, with crash points armed in its workers."""

    def __init__(self, bootstrap_servers: str, session: SparkSession, name: str, folder: Path) -> None:
        self._servers = bootstrap_servers
        self._session = session
        self._folder = folder
        self._events: list[events.Event] = []
        self._slept_in = 0
        self._source = NumberedInput(tuple(b"k%d" % each for each in range(KEYS)), PARALLELISM, RECORDS)
        self._job = name
        self.checkpoint_dir = folder / "checkpoints"
        create_topic(bootstrap_servers, f"{name}-in", PARALLELISM)
        create_topic(bootstrap_servers, f"{name}-out", OUTPUT_PARTITIONS)
        produce(bootstrap_servers, f"{name}-in", self._source.writes())

    @contextmanager
    def running(
        self, monkeypatch: pytest.MonkeyPatch, crash: str, **settings: str | None
    ) -> Iterator[Future[RunReport]]:
        """The job, until it ends; `{folder}` in `crash` is a folder for the files of its crash points."""
        environment = {VARIABLE: crash.format(folder=self._folder)}
        monkeypatch.setenv("ZOMBIE_JOB", self._job)
        monkeypatch.setenv("ZOMBIE_AWAITED", str(self._folder / "reached") if "checkpoint=" in crash else "")
        definition = load_job(str(JOB_FILE))
        resolved = RunSettings.resolve(
            bootstrap_servers=self._servers,
            checkpoint_dir=str(self.checkpoint_dir),
            parallelism=PARALLELISM,
            until_end=True,
            master=self._session.sparkContext.master,
            **settings,
        )
        with _environment_of_workers(self._session, environment), ThreadPoolExecutor(1) as pool:
            try:
                yield pool.submit(run, definition, resolved, on_event=self._events.append)
            finally:
                self._let_go()

    def put_to_sleep(self) -> psutil.Process:
        """Wait until a worker is held at its crash point, let it sleep there, and kill the other worker."""
        reached = self._folder / "reached"
        await_true(
            lambda: reached.exists() and reached.read_text().endswith("\n"),
            "no worker came to the crash point",
            WAIT_SECONDS,
        )
        sleeper = psutil.Process(int(reached.read_text()))
        daemon = sleeper.parent()
        assert daemon is not None
        assert "pyspark.daemon" in daemon.cmdline(), daemon.cmdline()
        sleeper.send_signal(signal.SIGSTOP)
        # A starved client may have cost attempts before.
        self._slept_in = max(event.attempt for event in list(self._events))
        for other in daemon.children():
            if other != sleeper:
                other.kill()
        self._let_go()
        return sleeper

    def _let_go(self) -> None:
        """Whatever became of the test: nobody is held."""
        for reached in self._folder.glob("reached*"):
            reached.with_name(f"{reached.name}.release").touch()

    def wait_for_checkpoint_of_a_later_attempt(self) -> None:
        """Wait until one that began after the worker was put to sleep has completed a checkpoint."""

        def completed() -> bool:
            heard = list(self._events)
            return any(
                isinstance(event, events.CheckpointCompleted) and event.attempt > self._slept_in for event in heard
            )

        await_true(completed, f"no attempt after {self._slept_in} completed a checkpoint", WAIT_SECONDS)

    def judge(self) -> None:
        """Exact output, state and positions, and nothing left open."""
        finished = FinishedJob(
            self._servers,
            self.checkpoint_dir,
            self._job,
            f"{self._job}-in",
            f"{self._job}-out",
            self._source,
            self._folder / "restored",
        )
        wrong = [*finished.judge_output(), *finished.judge_state(), *finished.judge_positions()]
        assert [*wrong, *finished.judge_history()] == []
        place = Place(
            job=self._job,
            bootstrap_servers=self._servers,
            topics=(f"{self._job}-out",),
            checkpoint_dir=self.checkpoint_dir,
        )
        findings = wait_until_clean(place)
        assert not findings, report(findings)


def wake(sleeper: psutil.Process) -> None:
    """Let it go on as if nothing had happened."""
    assert _runs(sleeper), "somebody ended the sleeper before it could wake"
    sleeper.send_signal(signal.SIGCONT)


def wait_until_gone(process: psutil.Process, seconds: float = WAIT_SECONDS) -> None:
    """Wait until a process has ended by itself."""
    await_true(lambda: not _runs(process), f"process {process.pid} did not end by itself", seconds)


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@contextmanager
def _environment_of_workers(session: SparkSession, environment: Mapping[str, str]) -> Iterator[None]:
    """Another environment makes Spark fork from another daemon, so no worker of an earlier job is used again."""
    known = session.sparkContext.environment
    known.update(environment)
    try:
        yield
    finally:
        for name in environment:
            del known[name]
