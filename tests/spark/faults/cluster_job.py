"""`examples/late_flights.py` on a standalone cluster, checkpoints in a bucket, while flights are fed to it.

And what can be hurt meanwhile.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import psutil
from confluent_kafka import admin as kafka
from late_flights import job
from late_flights_answer import expected_late_flights, read_late_flights

from tests.jobs.cli import twopc
from tests.object_server.server import ObjectServer
from tests.spark.cluster import SparkCluster
from tests.spark.faults.feed import Feed
from tests.spark.faults.watch import OutputWatch
from twopc.faults.process import ManagedProcess, await_true, start_coordinator
from twopc.protocol.job_description import JobDescription
from twopc.rpc.admin_client import AdminClient
from twopc.testing.local_broker import LocalBroker
from twopc.testing.ports import free_port
from twopc.testing.topics import create_topic

JOB_FILE = Path(__file__).parents[3] / "examples" / "late_flights.py"
JOB = job.definition().name
PARTITIONS = 4
PARALLELISM = 2
PATIENCE_SECONDS = 300.0
"""For anything that a fault, or a busy machine, may hold up."""


class ClusterJob:
    """All of it, from the first process to the last; what runs when the context is left is ended.

    `rate` is how many flights are given a second, about a fifth of which departed late.
    """

    def __init__(self, folder: Path, *, workers: int, rate: int, environment: dict[str, str], brokers: int = 1) -> None:
        self.folder = folder
        # Several that are heard of late, on a busy machine, must not count as gone.
        self.broker = LocalBroker(folder / "kafka", brokers=brokers, light=brokers == 1)
        self._objects = ObjectServer(folder / "objects")
        everywhere = {**environment, **self._objects.environment()}
        self.cluster = SparkCluster(folder / "spark", workers=workers, recovery=True, environment=everywhere)
        self._rate = rate
        self._checkpoints = self._objects.url("checkpoints")
        self._coordinator = f"127.0.0.1:{free_port()}"
        self._log = folder / "driver.log"
        self._context = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as context:
            context.enter_context(self._objects)
            context.enter_context(self.broker)
            context.enter_context(self.cluster)
            servers = self.broker.bootstrap_servers
            for topic in ("flights", "late-flights"):
                create_topic(servers, topic, PARTITIONS)
            port = int(self._coordinator.rpartition(":")[2])
            log, environment = self.folder / "coordinator.log", {**os.environ, **self._objects.environment()}
            context.enter_context(start_coordinator(self._checkpoints, port, environment, log, PATIENCE_SECONDS))
            self._admin = context.enter_context(AdminClient(self._coordinator))
            self.watch = context.enter_context(OutputWatch(servers, "late-flights", PARTITIONS))
            self._feed = context.enter_context(Feed(servers, "flights", self._rate))
            self.start_driver(context)
            self._context = context.pop_all()
        return self

    def __exit__(self, *raised: Any) -> None:
        # With what was raised: what ends badly because of that must not hide it.
        self._context.__exit__(*raised)

    def start_driver(self, context: ExitStack | None = None) -> None:
        """Give the command of the job, or give it again."""
        options = ("--master", self.cluster.url, "-p", str(PARALLELISM), "--checkpoint-dir", self._checkpoints)
        patience = ("--restart-attempts", "1000", "--coordinator", self._coordinator)
        command = [sys.executable, "-m", "twopc", "run", str(JOB_FILE), "-b", self.broker.bootstrap_servers]
        environment = {**os.environ, **self._objects.environment(), **self.cluster.environment()}
        self.driver = (context or self._context).enter_context(
            ManagedProcess([*command, *options, *patience, "-o", "json"], environment, self._log, PATIENCE_SECONDS)
        )

    def said(self) -> str:
        """All that the drivers have said so far."""
        return self._log.read_text(errors="replace")

    def await_word(self, word: str) -> None:
        """Wait until a driver has said this."""
        await_true(lambda: self._lives() and word in self.said(), f"{word!r} was not said", PATIENCE_SECONDS)

    def await_output(self, moment: float) -> float:
        """Wait for output of what was given after this moment; return the seconds that this took."""
        return self.watch.seconds_to_output_given_after(moment, PATIENCE_SECONDS, self._lives)

    def await_rest(self) -> None:
        """Wait until the job goes on as before: what is given now comes out."""
        self.await_output(time.time())

    def attempt(self) -> int:
        """The number of the attempt that runs."""
        return self._described().attempt

    def subtasks(self) -> list[psutil.Process]:
        """The Python workers of the attempt that runs."""
        await_true(
            lambda: all(each.pid and each.attached for each in self._described().subtasks),
            "not all subtasks are attached",
            PATIENCE_SECONDS,
        )
        return [psutil.Process(each.pid) for each in self._described().subtasks]

    def executor(self, subtask: int) -> psutil.Process:
        """The executor's JVM of a subtask."""
        return next(each for each in self.subtasks()[subtask].parents() if each.name() == "java")

    def group_coordinator(self) -> int:
        """The id of the broker that has the job's consumer group."""
        client = kafka.AdminClient({"bootstrap.servers": self.broker.bootstrap_servers})
        return int(client.describe_consumer_groups([JOB])[JOB].result(PATIENCE_SECONDS).coordinator.id)

    def jvm(self) -> psutil.Process:
        """The driver's own."""
        return next(each for each in psutil.Process(self.driver.pid).children(recursive=True) if each.name() == "java")

    def finish(self, *, all_flights: bool) -> list[str]:
        """Stop the job when it has read everything; return all that is wrong with its output."""
        if all_flights:
            self._feed.give_the_rest()
        else:
            self._feed.end()
        expected = Counter(expected_late_flights(self._feed.given))
        await_true(
            lambda: self._lives() and self.watch.count() >= expected.total(),
            "the output did not become complete",
            PATIENCE_SECONDS,
        )
        self.driver.send(signal.SIGTERM)
        code = self.driver.wait()
        wrong = [] if code == 0 else [f"the driver exited with {code}: {self.driver.last_words()}"]
        return wrong + self._judged(expected)

    def _judged(self, expected: Counter[Any]) -> list[str]:
        servers = self.broker.bootstrap_servers
        found = Counter(read_late_flights(servers))
        wrong = [f"missing: {each}" for each in (expected - found).elements()]
        wrong += [f"not expected, or twice: {each}" for each in (found - expected).elements()]
        if self.watch.count() != found.total():
            wrong.append(f"{self.watch.count()} records were seen on the way, {found.total()} in the end")
        verified = twopc("verify", "--map", str(JOB_FILE), "-b", servers, "-o", "json")
        if verified.code != 0:
            wrong.append(f"twopc verify: {verified.out} {verified.err}")
        return wrong

    def _described(self) -> JobDescription:
        return self._admin.describe(JOB)

    def _lives(self) -> bool:
        code = self.driver.exit_code
        assert code is None, f"the driver exited with {code}: {self.driver.last_words(20)}"
        return True
