"""A real standalone cluster, on loopback: workers whose executors have nothing of the driver's, not its environment."""

from __future__ import annotations

import json
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import ProxyHandler, build_opener
from zipfile import ZipFile

import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto

from tests.jobs.cli import twopc
from tests.spark.cluster import SparkCluster
from tests.spark.cluster_site import EXACT, PATIENCE_SECONDS, Site
from twopc.spark.spare_executors import DESCRIPTION
from twopc.spark_home import spark_home
from twopc.testing.broker import Broker
from twopc.testing.ports import free_port

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

END_SECONDS = 60.0

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

CONFIGURED = """
import time
from outside import upper
from twopc import Job, KafkaSink, KafkaSource

def shout(value):
    time.sleep(0.004)
    with open("words/end.txt", "rb") as end:
        return upper(value) + end.read()

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


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, light_jvms: dict[str, str]) -> Iterator[SparkCluster]:
    with SparkCluster(tmp_path_factory.mktemp("cluster"), environment=light_jvms) as running:
        yield running


@pytest.fixture
def site(broker: Broker, cluster: SparkCluster, topic: Callable[[], str], tmp_path: Path) -> Site:
    return Site(broker, cluster, topic(), tmp_path)


@pytest.mark.proof
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


def test_a_run_is_configured_by_its_command_line_and_its_page_says_what_runs_on_spare_executors_too(site: Site) -> None:
    site.job.write_text(CONFIGURED.format(name=site.name))
    with ZipFile(site.folder / "outside.zip", "w") as modules:
        modules.writestr("outside.py", "def upper(value):\n    return value.upper()\n")
    with ZipFile(site.folder / "words.zip", "w") as words:
        words.writestr("end.txt", "!")
    port = free_port()
    travels = ("--py-files", "outside.zip", "--archives", "words.zip#words")
    conf = ("--conf", f"spark.ui.port={port}", "--conf", "spark.driver.extraJavaOptions=-Dsaid.by=user")
    with site.started(*site.twopc_run(*travels, *conf, parallelism=1)) as run:
        run.await_word("checkpoint 1 completed")
        applications = f"http://127.0.0.1:{port}/api/v1/applications"
        (application,) = page(applications)
        jobs = page(f"{applications}/{application['id']}/jobs")
        (stage_job,) = (each for each in jobs if each["description"] != DESCRIPTION)

        def spare_is_warm() -> bool:
            found = page(f"{applications}/{application['id']}/jobs")
            return [each["status"] for each in found if each["description"] == DESCRIPTION] == ["SUCCEEDED"]

        run.await_true(spare_is_warm, "the spare executor was not warmed")
        environment = page(f"{applications}/{application['id']}/environment")
        run.await_true(lambda: site.output() == EXACT, "the output did not become complete")
        run.send(signal.SIGTERM)
        assert run.code() == 0, run.said
    assert application["name"] == site.name
    assert stage_job["description"] == f"{site.name}, attempt 1: task i is subtask i of 1"
    assert ["said.by", "user"] in environment["systemProperties"]


def page(address: str) -> Any:
    """What Spark's page says, where programs read it."""
    with build_opener(ProxyHandler({})).open(address, timeout=PATIENCE_SECONDS) as answer:
        return json.load(answer)


@pytest.mark.proof
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


@pytest.mark.proof
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


def test_a_master_at_whose_address_nobody_is_is_named_within_seconds(site: Site) -> None:
    command = site.twopc_run("--master", f"spark://127.0.0.1:{free_port()}")
    with site.started(*command) as run:
        assert run.code(END_SECONDS) == 2
    assert "Nobody accepts connections there ([Errno 111] Connection refused)" in run.said
    assert "is that its address (--master)?" in run.said
    assert "Traceback" not in run.said


@pytest.fixture
def silent_master() -> Iterator[str]:
    """The address of one that accepts connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"spark://127.0.0.1:{listening.getsockname()[1]}"


@pytest.mark.proof
def test_a_master_that_does_not_answer_is_not_called_a_missing_coordinator(site: Site, silent_master: str) -> None:
    with site.started(*site.twopc_run("--master", silent_master)) as run:
        assert run.code() == 2
    assert "It accepts connections, and has not taken the application" in run.said
    assert "Traceback" not in run.said


@pytest.mark.parametrize(
    "number", [pytest.param(signal.SIGINT, marks=pytest.mark.proof), signal.SIGTERM], ids=lambda number: number.name
)
def test_a_stop_while_spark_starts_ends_in_seconds_and_without_a_traceback(
    site: Site, number: signal.Signals, silent_master: str
) -> None:
    with site.started(*site.twopc_run("--master", silent_master)) as run:
        run.await_word("starting Spark")
        run.send(number)
        assert run.code(END_SECONDS) in (0, 130)
    assert "Traceback" not in run.said


@pytest.mark.proof
def test_workers_that_may_be_elsewhere_need_a_coordinator_that_they_can_reach(
    site: Site, cluster: SparkCluster
) -> None:
    refused = twopc("run", str(site.job), "-b", "127.0.0.1:1", "--master", cluster.url)
    assert refused.code == 2
    assert "name it with --coordinator" in refused.err
