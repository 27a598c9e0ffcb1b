"""A real YARN, on loopback: the command of docs/deployment.md, with what YARN itself takes away from a job."""

from __future__ import annotations

import os
import signal
import sys
import sysconfig
import tarfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from twopc.faults.process import ManagedProcess, await_true, start_coordinator
from twopc.testing.broker import Broker
from twopc.testing.local_yarn import QUEUE, LocalYarn
from twopc.testing.ports import free_port
from twopc.testing.topics import Write, create_topic, produce, read_topic

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900), pytest.mark.proof]

PART = 1000
PATIENCE_SECONDS = 300.0

JOB = """
import sys
from pathlib import Path
from twopc import Job, KafkaSink, KafkaSource

def where(value):
    return value + b" in " + Path(sys.prefix).name.encode()

job = Job({name!r})
job.source(KafkaSource({name!r} + "-in")).map(where).sink(KafkaSink({name!r} + "-out"))
"""


@pytest.fixture(scope="module")
def yarn(tmp_path_factory: pytest.TempPathFactory, light_jvms: dict[str, str]) -> Iterator[LocalYarn]:
    with LocalYarn(tmp_path_factory.mktemp("yarn"), variables=light_jvms) as running:
        yield running


def packed_environment(folder: Path) -> Path:
    """An archive as venv-pack makes it: an interpreter that links to its base, and packages (by name, to be small)."""
    packages = Path("env") / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    (folder / packages).mkdir(parents=True)
    here = sysconfig.get_path("purelib")
    (folder / packages / "here.pth").write_text(f"import site; site.addsitedir({here!r})\n")
    base = Path(sys.executable).resolve()
    (folder / "env" / "pyvenv.cfg").write_text(f"home = {base.parent}\n")
    (folder / "env" / "bin").mkdir()
    (folder / "env" / "bin" / "python").symlink_to(base)
    archive = folder / "env.tar.gz"
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(folder / "env", "")
    return archive


def executors(yarn: LocalYarn) -> list[psutil.Process]:
    assert yarn.node.pid is not None
    family = psutil.Process(yarn.node.pid).children(recursive=True)
    return [each for each in family if each.name() == "java" and any("Executor" in word for word in each.cmdline())]


def test_a_job_is_exact_though_yarn_loses_a_container_and_then_the_application(
    broker: Broker, yarn: LocalYarn, topic: Callable[[], str], tmp_path: Path
) -> None:
    name, servers = topic(), broker.bootstrap_servers
    for suffix in ("in", "out"):
        create_topic(servers, f"{name}-{suffix}", 2)
    (tmp_path / "job.py").write_text(JOB.format(name=name))

    def feed(part: int) -> None:
        numbers = range(part * PART, (part + 1) * PART)
        produce(servers, f"{name}-in", (Write(b"%d" % number, partition=number % 2) for number in numbers))

    def output() -> Counter[bytes]:
        return Counter(record.value for record in read_topic(servers, f"{name}-out") if record.value is not None)

    def exact(parts: int) -> Counter[bytes]:
        return Counter(b"%d in env" % number for number in range(parts * PART))

    port, checkpoints = free_port(), tmp_path / "checkpoints"
    command = [sys.executable, "-m", "twopc", "run", str(tmp_path / "job.py"), "--master", "yarn", "-p", "2"]
    command += ["--archives", f"{packed_environment(tmp_path)}#env", "--conf", f"spark.yarn.queue={QUEUE}"]
    command += ["--conf", "spark.executor.instances=2", "--conf", "spark.executor.cores=1"]
    command += ["--coordinator", f"127.0.0.1:{port}", "--checkpoint-dir", str(checkpoints), "-b", servers]
    environment = os.environ | yarn.environment() | {"PYSPARK_PYTHON": "./env/bin/python"}
    with (
        start_coordinator(checkpoints, port, os.environ, tmp_path / "coordinator.log"),
        ManagedProcess(command, environment, tmp_path / "run.log", PATIENCE_SECONDS) as run,
    ):

        def wait(parts: int) -> None:
            def there() -> bool:
                assert run.exit_code is None, run.log.read_text()
                time.sleep(1)
                return output() == exact(parts)

            await_true(there, f"{parts} parts are not there: {run.log.read_text()}", PATIENCE_SECONDS)

        feed(0)
        wait(1)
        executors(yarn)[0].kill()
        feed(1)
        wait(2)
        yarn.kill_application(yarn.applications()[-1]["id"])
        feed(2)
        wait(3)
        run.send(signal.SIGTERM)
        assert run.wait() == 0, run.log.read_text()
    assert output() == exact(3)
    assert [(each["name"], each["queue"]) for each in yarn.applications()] == [(name, f"root.{QUEUE}")] * 2
