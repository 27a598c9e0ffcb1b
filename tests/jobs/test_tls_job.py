"""A whole job against a coordinator with mutual TLS: the driver is an admin, the workers are tasks."""

from __future__ import annotations

from pathlib import Path

import pytest

from coordinator.access import ADMIN, TASK
from coordinator.server import CoordinatorServer
from tests.jobs.cli import twopc
from tests.rpc.certificates import LOOPBACK, Authority, Identity, role
from twopc.storage.local import LocalStore
from twopc.testing.broker import Broker
from twopc.testing.topics import create_topic, produce, read_topic

pytestmark = pytest.mark.broker

JOB = """
import os
from twopc import Job, KafkaSink, KafkaSource

job = Job(os.environ["JOB_NAME"])
job.source(KafkaSource(job.name + "-in")).map(bytes.upper).sink(KafkaSink(job.name + "-out"))
"""


@pytest.mark.parametrize("worker_role", [TASK, None], ids=["as a task", "as the driver"])
def test_a_job_runs_over_mutual_tls(broker: Broker, tmp_path: Path, topic: object, worker_role: bytes | None) -> None:
    assert callable(topic)
    name = str(topic())
    for end in ("in", "out"):
        create_topic(broker.bootstrap_servers, f"{name}-{end}")
    produce(broker.bootstrap_servers, f"{name}-in", [b"hello"])
    (tmp_path / "job.py").write_text(JOB)
    authority = Authority(tmp_path, "authority")
    server = CoordinatorServer(
        LocalStore(tmp_path / "checkpoints"), tls=authority.trusted_by(authority.issue("coordinator", LOOPBACK))
    )
    driver = authority.issue("driver", role(ADMIN))
    environment = {"TWOPC_COORDINATOR_CA": str(authority.file), **_shown("COORDINATOR", driver), "JOB_NAME": name}
    if worker_role is not None:
        environment |= _shown("WORKER", authority.issue("worker", role(worker_role)))
    address = server.start()
    try:
        done = twopc(
            *("run", str(tmp_path / "job.py"), "--bootstrap-servers", broker.bootstrap_servers, "--host", "process"),
            *("--checkpoint-dir", str(tmp_path / "checkpoints"), "--coordinator", address, "--until-end"),
            **environment,
        )
        assert done.code == 0, done.err
        listed = twopc("jobs", "list", "--coordinator", address, **environment)
        assert name in listed.out
    finally:
        server.stop()
    assert [record.value for record in read_topic(broker.bootstrap_servers, f"{name}-out")] == [b"HELLO"]


def _shown(who: str, identity: Identity) -> dict[str, str]:
    return {f"TWOPC_{who}_CERT": str(identity.cert), f"TWOPC_{who}_KEY": str(identity.key)}
