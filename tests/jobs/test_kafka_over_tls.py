"""A Kafka that speaks TLS, and only to whom it knows: load, job, verdict and drill get at it, by both clients."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.rpc.certificates import LOOPBACK, Authority
from twopc import cli
from twopc.testing.broker_settings import TlsPort
from twopc.testing.local_broker import LocalBroker
from twopc.testing.ports import free_port
from twopc.testing.topics import create_topic

pytestmark = pytest.mark.broker

JOB = """
from twopc import Job, KafkaSink, KafkaSource

access = {access!r}
job = Job("sealed")
job.source(KafkaSource("in", properties=access)).map(bytes.upper).sink(KafkaSink("out", properties=access))
"""

BARE = """
from twopc import Job, KafkaSink, KafkaSource

job = Job("bare")
job.source(KafkaSource("in")).map(bytes.upper).sink(KafkaSink("bare-out"))
"""


@dataclass(frozen=True, slots=True)
class Sealed:
    """Brokers that are reached with the settings of a file, or of the job's own properties, and not otherwise."""

    bootstrap_servers: str
    config: Path
    job: Path
    folder: Path

    def twopc(self, command: str, *arguments: str) -> Any:
        return CliRunner().invoke(cli.app, [command, *arguments, "-b", self.bootstrap_servers])


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sealed]:
    folder = tmp_path_factory.mktemp("tls")
    authority = Authority(folder, "authority")
    node, client = authority.issue("node", LOOPBACK), authority.issue("client", LOOPBACK)
    identity, config, job = (folder / name for name in ("identity.pem", "client.properties", "sealed_job.py"))
    identity.write_bytes(node.key.read_bytes() + node.cert.read_bytes())
    access = {
        "security.protocol": "SSL",
        "ssl.ca.location": str(authority.file),
        "ssl.certificate.location": str(client.cert),
        "ssl.key.location": str(client.key),
    }
    config.write_text("".join(f"{name}={value}\n" for name, value in access.items()))
    job.write_text(JOB.format(access=access))
    tls = TlsPort(free_port(), identity, authority.file)
    with LocalBroker(folder / "kafka", tls=tls, light=True) as running:
        for topic in ("in", "out", "bare-out"):
            create_topic(running.bootstrap_servers, topic, 2)
        yield Sealed(f"127.0.0.1:{tls.port}", config, job, folder)


def test_load_job_verdict_and_drill_get_at_brokers_that_want_tls(sealed: Sealed, forgotten_loads: None) -> None:
    config, checkpoints = ("--kafka-config", str(sealed.config)), ("--checkpoint-dir", str(sealed.folder / "chk"))
    for step in (
        ("produce", "--topic", "in", "--records", "500", "--keys", "10", *config),
        ("run", str(sealed.job), "--host", "process", "--until-end", *checkpoints),
        ("verify", "--map", str(sealed.job), *config),
        ("produce", "--topic", "in", "--records", "100", "--keys", "10", *config),
        ("drill", str(sealed.job), "--host", "process", "--scratch-dir", str(sealed.folder), *checkpoints, *config),
    ):
        done = sealed.twopc(*step)
        assert done.exit_code == 0, f"{step[0]}: {done.output}"


@pytest.mark.proof
def test_a_job_that_knows_nothing_of_tls_is_let_in_by_the_settings_of_its_run(
    sealed: Sealed, tmp_path: Path, forgotten_loads: None
) -> None:
    job, pem = tmp_path / "bare_job.py", tmp_path / "pem.properties"
    job.write_text(BARE)
    pem.write_text(_in_lines(sealed.config.read_text()))
    checkpoints = ("--checkpoint-dir", str(tmp_path / "chk"))
    for step in (
        ("produce", "--topic", "in", "--records", "100", "--keys", "10", "--kafka-config", str(pem)),
        ("run", str(job), "--host", "process", "--until-end", *checkpoints, "--kafka-config", str(pem)),
        ("verify", "--map", str(job), "--kafka-config", str(pem)),
        ("produce", "--topic", "in", "--records", "100", "--keys", "10", "--kafka-config", str(pem)),
        *(
            ("drill", str(job), "--host", "process", "--scratch-dir", str(tmp_path), *more, "--kafka-config", str(pem))
            for more in (checkpoints, ("--faults", "1", "--records", "1000"))
        ),
    ):
        done = sealed.twopc(*step)
        assert done.exit_code == 0, f"{step[0]}: {done.output}"
    kept = b"".join(file.read_bytes() for file in (tmp_path / "chk").rglob("*") if file.is_file())
    assert b"PRIVATE KEY" not in kept


def _in_lines(properties: str) -> str:
    """Return the same settings with the PEM that they name in them, in place of files."""
    lines = dict(line.split("=", 1) for line in properties.splitlines())
    return "".join(
        f"{name.replace('.location', '.pem')}={_escaped(Path(value).read_text())}\n"
        if name.endswith(".location")
        else f"{name}={value}\n"
        for name, value in lines.items()
    )


def _escaped(pem: str) -> str:
    return pem.replace("\n", "\\n")
