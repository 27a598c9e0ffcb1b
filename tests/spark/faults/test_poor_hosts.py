"""Hosts that lack what a job needs: each is named with what is missing, and the job goes on where nothing is."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from socket import gethostname

import pytest

from tests.spark.cluster import SparkCluster
from tests.spark.cluster_site import EXACT, Site
from twopc.errors import ConfigurationError
from twopc.testing.broker import Broker

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900), pytest.mark.proof]

PYTHON = "python-of-the-cluster"

JOB = """
from outside import shouted
from twopc import Job, KafkaSink, KafkaSource

job = Job({name!r})
job.source(KafkaSource({name!r} + "-in")).map(lambda value: shouted(value)).sink(KafkaSink({name!r} + "-out"))
"""

MOUNTING = ("unshare", "--map-root-user", "--mount", "sh", "-c")


@pytest.fixture
def cluster(tmp_path: Path, light_jvms: dict[str, str]) -> Iterator[SparkCluster]:
    with SparkCluster(tmp_path / "spark", workers=0, environment=light_jvms) as running:
        yield running


@pytest.fixture
def site(broker: Broker, cluster: SparkCluster, topic: Callable[[], str], tmp_path: Path) -> Site:
    (tmp_path / "job").mkdir()
    made = Site(broker, cluster, topic(), tmp_path / "job")
    made.job.write_text(JOB.format(name=made.name))
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "outside.py").write_text("def shouted(value):\n    return value.upper() + b'!'\n")
    (tmp_path / "bin").mkdir()
    python = tmp_path / "bin" / PYTHON
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    return made


def may_mount() -> bool:
    return shutil.which("unshare") is not None and not subprocess.run([*MOUNTING, "true"], check=False).returncode


def test_a_job_names_what_a_host_lacks_and_is_exact_when_that_host_has_gone(
    site: Site, cluster: SparkCluster, tmp_path: Path
) -> None:
    python = {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"}
    modules = {"PYTHONPATH": str(tmp_path / "modules")}
    whole = python | modules
    cluster.add_worker(environment=whole)
    command = site.twopc_run("--until-end", "--restart-attempts", "1000")
    with site.started(*command, PYSPARK_PYTHON=PYTHON, **modules) as run:
        poor = cluster.add_worker(environment=modules)
        run.await_word(f'Cannot run program "{PYTHON}": error=2, No such file or directory (executor ')
        poor.stop()
        poor = cluster.add_worker(environment=python)
        assert run.code() == ConfigurationError.exit_code, run.said
        assert f"No module named 'outside' (on {gethostname()}; " in run.said
        poor.stop()
    with site.started(*command, PYSPARK_PYTHON=PYTHON, **modules) as run:
        if may_mount():
            checkpoints = site.folder / "checkpoints"
            hidden = f'mount -t tmpfs none {checkpoints} && exec "$@"'
            poor = cluster.add_worker(environment=whole, within=(*MOUNTING, hidden, "sh"))
            run.await_word(f"{gethostname()}:{checkpoints / site.name} is not there")
            poor.stop()
        cluster.add_worker(environment=whole)
        assert run.code() == 0, run.said
    assert site.output() == EXACT
