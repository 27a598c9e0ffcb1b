"""Canaries: secrets of a job and of its coordinator are nowhere but where they were put."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from tests.jobs.cli import TIMEOUT_SECONDS, twopc
from tests.rpc.kit import Watcher, eventually
from twopc import events
from twopc.driver.discovery import find
from twopc.errors import ConfigurationError
from twopc.rpc.admin_client import AdminClient
from twopc.rpc.job_client import JobClient
from twopc.storage.local import LocalStore
from twopc.testing.broker import Broker
from twopc.testing.topics import create_topic, produce
from twopc.user_folders import STATE_VARIABLE

pytestmark = pytest.mark.broker

PASSWORD, KEY_PASSWORD, TOKEN = "canary-password-7f3a", "canary-key-password-91bc", "canary-token-55de"
RUN_SECRET = "canary-client-secret-2e8d"
CANARIES = (PASSWORD, KEY_PASSWORD, TOKEN, RUN_SECRET)

JOB = """
import os
from twopc import Job, KafkaSink, KafkaSource

secret = {"sasl.password": os.environ["CANARY_1"], "ssl.key.password": os.environ["CANARY_2"]}

def work(value):
    if value == b"poison":
        raise ValueError("poison, in " + os.environ["JOB_FOLDER"] + "/deep/inside.py")
    return value.upper()

name = os.environ["JOB_NAME"]
job = Job(name, properties=secret)
job.source(KafkaSource(name + "-in")).map(work).sink(KafkaSink(name + "-out", properties=secret))
"""


@dataclass
class Site:
    """A job with secrets, its files, and all that anything has printed."""

    folder: Path
    job: str
    servers: str
    printed: list[str] = field(default_factory=list)

    @property
    def checkpoints(self) -> Path:
        return self.folder / "checkpoints"

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "JOB_NAME": self.job,
            "JOB_FOLDER": str(self.folder),
            "CANARY_1": PASSWORD,
            "CANARY_2": KEY_PASSWORD,
            "TWOPC_DEBUG": "1",
            "TWOPC_LOG_LEVEL": "debug",
            "TWOPC_KAFKA_CONFIG": str(self.folder / "run.properties"),
        }

    @contextmanager
    def process(self, *arguments: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
        """Run a command beside the test; keep what it prints."""
        with subprocess.Popen(
            [sys.executable, "-m", "twopc", "--debug", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self.environment | environment,
        ) as process:
            assert process.stdout is not None
            reading = threading.Thread(target=lambda: self.printed.extend(process.stdout or ()))
            reading.start()
            try:
                yield process
                process.wait(TIMEOUT_SECONDS)
            finally:
                process.kill()
                reading.join()

    def run(self, *more: str) -> tuple[str, ...]:
        job_file = self.folder / "job.py"
        job_file.write_text(JOB)
        (self.folder / "run.properties").write_text(f"sasl.oauthbearer.client.secret={RUN_SECRET}\n")
        return (
            *("run", str(job_file), "--bootstrap-servers", self.servers, "--host", "process"),
            *("--checkpoint-dir", str(self.checkpoints), "--checkpoint-interval", "100ms", *more),
        )

    def stored(self) -> bytes:
        """All that is in the checkpoint folder now; a job that runs deletes some of it meanwhile."""
        contents: list[bytes] = []
        for folder, _, names in os.walk(self.checkpoints):
            for name in names:
                with suppress(FileNotFoundError):
                    contents.append(Path(folder, name).read_bytes())
        assert contents
        return b"\n".join(contents)


@pytest.fixture
def site(broker: Broker, tmp_path: Path, topic: object, monkeypatch: pytest.MonkeyPatch) -> Site:
    assert callable(topic)
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path / "state"))
    job = str(topic())
    for end in ("in", "out"):
        create_topic(broker.bootstrap_servers, f"{job}-{end}")
    produce(broker.bootstrap_servers, f"{job}-in", [b"hello"] * 100)
    return Site(tmp_path, job, broker.bootstrap_servers)


def command_lines() -> str:
    """What every process of this machine was started with."""
    lines: list[str] = []
    for process in psutil.process_iter():
        try:
            lines.append("\0".join(process.cmdline()))
        except psutil.Error:
            continue
    return "\n".join(lines)


def found_in(text: str | bytes, canaries: tuple[str, ...] = CANARIES) -> list[str]:
    data = text.encode() if isinstance(text, str) else text
    return [canary for canary in canaries if canary.encode() in data]


def test_a_job_on_a_service_shows_its_secrets_nowhere(site: Site) -> None:
    token_file = site.folder / "token"
    token_file.write_text(TOKEN)
    address_of = ("--token-file", str(token_file))
    start = ("coordinator", "start", "--checkpoint-dir", str(site.checkpoints), "-o", "json", *address_of)
    with site.process(*start) as service:
        eventually(lambda: any(line.startswith("{") for line in site.printed), "the coordinator is ready")
        address = json.loads(next(line for line in site.printed if line.startswith("{")))["address"]
        client, admin = JobClient(address, token=TOKEN), AdminClient(address, token=TOKEN)
        with Watcher(client, site.job) as watcher, admin:
            with site.process(*site.run("--coordinator", address, *address_of)):
                eventually(lambda: len(watcher.told(events.CheckpointConfirmed)) >= 2, "checkpoints complete")
                lines = command_lines()
                described = repr(admin.describe(site.job))
                assert twopc("stop", site.job, "--coordinator", address, *address_of).code == 0
            _fail_on_poison(site, "--coordinator", address, *address_of)
            eventually(lambda: bool(watcher.told(events.AttemptFailed)), "the failure is told")
            heard = repr(watcher.events)
        client.close()
        service.send_signal(signal.SIGTERM)
    assert "twopc" in lines
    for text in (lines, described, heard, "".join(site.printed), site.stored()):
        assert found_in(text) == []
    assert "poison" in heard
    assert str(site.folder) not in heard


def test_a_job_with_a_coordinator_of_its_own_keeps_the_token_to_itself(site: Site) -> None:
    with site.process(*site.run()):
        eventually(lambda: _is_found(site), "the run says where it is")
        announcement = find(LocalStore(site.checkpoints), site.job)
        with AdminClient(announcement.address, token=announcement.token) as admin:
            eventually(lambda: _kept(admin, site.job) >= 2, "checkpoints complete")
            described = repr(admin.describe(site.job))
        lines, meanwhile = command_lines(), site.stored()
        folder = ("--checkpoint-dir", str(site.checkpoints))
        taken = json.loads(twopc("savepoint", site.job, "--label", "canary", *folder, "-o", "json").out)
        assert (taken["completed"], taken["label"]) == (True, "canary")
        assert twopc("stop", site.job, *folder).code == 0
    _fail_on_poison(site)
    for text in (lines, described, "".join(site.printed), meanwhile, site.stored()):
        assert found_in(text, (*CANARIES, announcement.token)) == []
    assert list((site.folder / "state").rglob("*.json")) == []


# A minute of patience with brokers.
@pytest.mark.timeout(720)
def test_a_broker_that_does_not_take_the_password_is_not_told_about_with_it(site: Site) -> None:
    login = '"security.protocol": "sasl_plaintext", "sasl.mechanism": "PLAIN", "sasl.username": "me", '
    arguments = site.run("--until-end", "--restart-strategy", "none", "--checkpoint-timeout", "3s")
    (site.folder / "job.py").write_text(JOB.replace('{"sasl.password"', f'{{{login}"sasl.password"'))
    with site.process(*arguments) as process:
        pass
    assert process.returncode != 0
    assert found_in("".join(site.printed)) == []


def _is_found(site: Site) -> bool:
    try:
        return find(LocalStore(site.checkpoints), site.job).job == site.job
    except ConfigurationError:
        time.sleep(0.05)
        return False


def _kept(admin: AdminClient, job: str) -> int:
    try:
        return len(admin.describe(job).kept)
    except ConfigurationError:
        return 0


def _fail_on_poison(site: Site, *more: str) -> None:
    """Let the job meet a record that it can't stand, with a traceback of every error."""
    produce(site.servers, f"{site.job}-in", [b"poison"])
    with site.process(*site.run("--until-end", *more)) as failing:
        pass
    assert failing.returncode == 1
    assert "poison" in "".join(site.printed)
