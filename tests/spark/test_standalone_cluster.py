"""A real standalone cluster, on loopback: workers whose executors have nothing of the driver's, not its environment."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto

from tests.jobs.cli import twopc
from tests.spark.cluster import SparkCluster, spark_home
from twopc.testing.broker import Broker
from twopc.testing.ports import free_port
from twopc.testing.topics import Write, create_topic, produce, read_topic

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

RECORDS = 3000
PATIENCE_SECONDS = 300.0
END_SECONDS = 60.0

JOB = """
import time
from twopc import Job, KafkaSink, KafkaSource

def slowly(value):
    time.sleep(0.004)
    return value.upper() + b"!"

job = Job({name!r})
job.source(KafkaSource({name!r} + "-in")).map(slowly).sink(KafkaSink({name!r} + "-out"))

if __name__ == "__main__":
    job.run(parallelism=2, until_end=True)
"""


MADE_WHERE_IT_RUNS = """
import os
import threading
from twopc import Job, KafkaSink, KafkaSource
from voices_pb2 import Voice

LOCK = threading.Lock()
END = os.environ["VOICE_END"].encode()

def shout(value):
    from shouting.loud import upper
    with LOCK:
        return upper(Voice.FromString(Voice(said=value).SerializeToString()).said) + END

job = Job({name!r})
job.source(KafkaSource({name!r} + "-in")).map(shout).sink(KafkaSink({name!r} + "-out"))
"""

AS_PROTOC_WRITES = """
from google.protobuf import descriptor_pool
from google.protobuf.internal import builder
DESCRIPTOR = descriptor_pool.Default().AddSerializedFile({file!r})
builder.BuildMessageAndEnumDescriptors(DESCRIPTOR, globals())
builder.BuildTopDescriptorsAndMessages(DESCRIPTOR, 'voices_pb2', globals())
"""


def voices_pb2() -> str:
    """The module that protoc makes of a message with one field."""
    optional, text = FieldDescriptorProto.LABEL_OPTIONAL, FieldDescriptorProto.TYPE_BYTES
    message = DescriptorProto(name="Voice")
    field = FieldDescriptorProto(name="said", number=1, label=optional, type=text)
    message.field.append(field)
    file = FileDescriptorProto(name="voices.proto", package="voices", syntax="proto3", message_type=[message])
    return AS_PROTOC_WRITES.format(file=file.SerializeToString())


class Run:
    """A driver in a process of its own, whose words are in a file."""

    def __init__(self, folder: Path, *command: str, **environment: str) -> None:
        self._said = folder / f"said-{time.monotonic_ns()}"
        with self._said.open("wb") as said:
            self._process = subprocess.Popen(
                command, stdout=said, stderr=said, env=os.environ | environment, cwd=folder, start_new_session=True
            )

    @property
    def said(self) -> str:
        return self._said.read_text(errors="replace")

    def await_word(self, word: str) -> None:
        self.await_true(lambda: word in self.said, f"{word!r} was not said")

    def await_true(self, condition: Callable[[], bool], otherwise: str) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            assert self._process.poll() is None, f"ended with {self._process.poll()}: {self.said}"
            assert time.monotonic() < deadline, f"{otherwise}: {self.said}"
            time.sleep(0.1)

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def code(self, seconds: float = PATIENCE_SECONDS) -> int:
        """Wait for the end."""
        return self._process.wait(seconds)

    def end(self) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, light_jvms: dict[str, str]) -> Iterator[SparkCluster]:
    with SparkCluster(tmp_path_factory.mktemp("cluster"), environment=light_jvms) as running:
        yield running


class Site:
    """What a job on a cluster needs beside it: a broker with its topics, its files, a coordinator for all machines."""

    def __init__(self, broker: Broker, cluster: SparkCluster, name: str, folder: Path) -> None:
        self._broker = broker
        self._cluster = cluster
        self.name = name
        self.folder = folder
        self.job = folder / "job.py"
        self.job.write_text(JOB.format(name=name))
        self._coordinator = f"127.0.0.1:{free_port()}"
        for suffix in ("in", "out"):
            create_topic(broker.bootstrap_servers, f"{name}-{suffix}", 2)
        produce(broker.bootstrap_servers, f"{name}-in", (Write(b"a%d" % number) for number in range(RECORDS)))

    @contextmanager
    def started(self, *command: str, **environment: str) -> Iterator[Run]:
        """Run a command of the driver, and a coordinator for it, until the context ends."""
        folder = str(self.folder / "checkpoints")
        address = ("--checkpoint-dir", folder, "--address", self._coordinator)
        coordinator = Run(self.folder, sys.executable, "-m", "twopc", "coordinator", "start", *address)
        settings = {
            "TWOPC_BOOTSTRAP_SERVERS": self._broker.bootstrap_servers,
            "TWOPC_CHECKPOINT_DIR": folder,
            "TWOPC_COORDINATOR": self._coordinator,
        }
        coordinator.await_word(self._coordinator)
        run = Run(self.folder, *command, **settings, **self._cluster.environment(), **environment)
        try:
            yield run
        finally:
            run.end()
            coordinator.end()

    def twopc_run(self, *arguments: str, parallelism: int = 2) -> list[str]:
        options = ("--master", self._cluster.url, "-p", str(parallelism))
        return [sys.executable, "-m", "twopc", "run", str(self.job), *options, *arguments]

    def output(self) -> Counter[bytes]:
        records = read_topic(self._broker.bootstrap_servers, f"{self.name}-out")
        return Counter(record.value for record in records if record.value is not None)


EXACT = Counter(b"A%d!" % number for number in range(RECORDS))


@pytest.fixture
def site(broker: Broker, cluster: SparkCluster, topic: Callable[[], str], tmp_path: Path) -> Site:
    return Site(broker, cluster, topic(), tmp_path)


def test_a_job_is_exact_on_two_workers_though_an_executor_is_killed(site: Site, cluster: SparkCluster) -> None:
    with site.started(*site.twopc_run("--until-end", "-o", "json")) as run:
        run.await_word("checkpoint 1 completed")
        cluster.executors()[0].kill()
        assert run.code() == 0, run.said
        report = json.loads(run.said.splitlines()[-1])
    assert "Spark says: executor" in run.said
    assert report["attempts"] == 2
    assert site.output() == EXACT


def test_what_a_job_makes_when_it_is_loaded_is_made_where_it_runs_and_its_files_need_not_be_there(
    site: Site, cluster: SparkCluster
) -> None:
    site.job.write_text(MADE_WHERE_IT_RUNS.format(name=site.name))
    (site.folder / "voices_pb2.py").write_text(voices_pb2())
    (site.folder / "shouting").mkdir()
    (site.folder / "shouting" / "__init__.py").touch()
    (site.folder / "shouting" / "loud.py").write_text("def upper(value):\n    return value.upper()\n")
    with site.started(*site.twopc_run("--until-end"), VOICE_END="!") as run:
        run.await_true(lambda: bool(cluster.executors()), "no executor started")
        for path in (site.job, site.folder / "voices_pb2.py", site.folder / "shouting" / "loud.py"):
            path.unlink()
        assert run.code() == 0, run.said
    assert site.output() == EXACT


def test_the_master_of_spark_submit_is_used(site: Site, cluster: SparkCluster) -> None:
    submit = str(spark_home() / "bin" / "spark-submit")
    before = len(cluster.applications())
    environment = {"PYSPARK_PYTHON": sys.executable}
    with site.started(submit, "--master", cluster.url, str(site.job), **environment) as run:
        assert run.code() == 0, run.said
    assert len(cluster.applications()) == before + 1
    assert site.output() == EXACT


def test_a_job_that_waits_for_slots_says_so_and_obeys_sigterm(site: Site) -> None:
    with site.started(*site.twopc_run(parallelism=3)) as run:
        run.await_word("waiting for 3 task slots, Spark has 2")
        run.send(signal.SIGTERM)
        assert run.code(END_SECONDS) == 0, run.said


def test_a_job_goes_on_after_its_master_came_back_without_its_application(site: Site, cluster: SparkCluster) -> None:
    with site.started(*site.twopc_run()) as run:
        run.await_word("checkpoint 1 completed")
        cluster.master.kill()
        cluster.start_master()
        run.await_word("Spark's master has lost the application")
        run.await_true(lambda: site.output() == EXACT, "the output did not become complete")
        run.await_true(
            lambda: "completed in" in run.said.partition("has lost the application")[2],
            "no checkpoint in the new session",
        )
        run.send(signal.SIGTERM)
        assert run.code() == 0, run.said
    assert site.output() == EXACT


def test_a_master_that_does_not_answer_is_not_called_a_missing_coordinator(site: Site) -> None:
    command = site.twopc_run("--master", f"spark://127.0.0.1:{free_port()}")
    with site.started(*command) as run:
        assert run.code() == 2
    assert "Spark can't start with master 'spark://127.0.0.1:" in run.said
    assert "Traceback" not in run.said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_a_stop_while_spark_starts_ends_in_seconds_and_without_a_traceback(site: Site, number: signal.Signals) -> None:
    with site.started(*site.twopc_run("--master", f"spark://127.0.0.1:{free_port()}")) as run:
        run.await_word("starting Spark")
        run.send(number)
        assert run.code(END_SECONDS) in (0, 130)
    assert "Traceback" not in run.said


def test_workers_that_may_be_elsewhere_need_a_coordinator_that_they_can_reach(
    site: Site, cluster: SparkCluster
) -> None:
    refused = twopc("run", str(site.job), "-b", "127.0.0.1:1", "--master", cluster.url)
    assert refused.code == 2
    assert "name it with --coordinator" in refused.err
