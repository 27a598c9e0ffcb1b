"""A coordinator with TLS: who gets in, as what, and what the others are told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from coordinator.access import ADMIN, TASK
from coordinator.server import CoordinatorServer
from tests.rpc.certificates import DAY, LOOPBACK, Authority, role
from tests.rpc.kit import JOB, PATIENCE_SECONDS, SETTINGS, ScriptedSubtask, eventually, start_attempt
from twopc.config import RunSettings
from twopc.errors import ConfigurationError, Unavailable
from twopc.protocol.messages import FencedOff
from twopc.rpc.admin_client import AdminClient
from twopc.rpc.channel import open_channel
from twopc.rpc.job_client import JobClient
from twopc.rpc.tls import TlsFiles, channel_credentials, driver_tls, server_credentials, worker_tls
from twopc.storage.local import LocalStore


@dataclass(frozen=True)
class Pki:
    """An authority, and what it has signed; and a stranger's."""

    authority: Authority
    server: TlsFiles
    admin: TlsFiles
    task: TlsFiles
    refused: dict[str, TlsFiles]


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Pki:
    folder = tmp_path_factory.mktemp("certificates")
    authority, stranger = Authority(folder, "authority"), Authority(folder, "stranger")
    of_stranger = stranger.issue("admin-of-a-stranger", role(ADMIN))
    expired = authority.issue("expired", role(ADMIN), ends_in=-DAY)
    return Pki(
        authority=authority,
        server=authority.trusted_by(authority.issue("server", LOOPBACK)),
        admin=authority.trusted_by(authority.issue("admin", role(ADMIN))),
        task=authority.trusted_by(authority.issue("task", role(TASK))),
        refused={
            "none": authority.trusted_by(),
            "of another authority": authority.trusted_by(of_stranger),
            "expired": authority.trusted_by(expired),
            "trusting another authority": stranger.trusted_by(authority.issue("astray", role(ADMIN))),
        },
    )


@contextmanager
def serving(folder: Path, tls: TlsFiles | None, token: str | None = None) -> Iterator[str]:
    server = CoordinatorServer(LocalStore(folder), token=token, tls=tls)
    address = server.start()
    try:
        yield address
    finally:
        server.stop()


@contextmanager
def calling(address: str, tls: TlsFiles | None, token: str | None = None) -> Iterator[JobClient]:
    client = JobClient(address, token=token, tls=tls, patience_seconds=0)
    try:
        yield client
    finally:
        client.close()


def test_admins_and_tasks_talk_over_mutual_tls(tmp_path: Path, pki: Pki) -> None:
    with serving(tmp_path, pki.server) as address, calling(address, pki.admin) as client:
        started = start_attempt(client, JOB, SETTINGS)
        running = [ScriptedSubtask(address, started.attempt, subtask, tls=pki.task) for subtask in (0, 1)]
        eventually(lambda: all(subtask.completed() >= 1 for subtask in running), "a checkpoint completes")
        for subtask in running:
            subtask.close()


@pytest.mark.parametrize("which", ["none", "of another authority", "expired", "trusting another authority"])
def test_a_certificate_that_is_not_trusted_opens_nothing(tmp_path: Path, pki: Pki, which: str) -> None:
    with serving(tmp_path, pki.server) as address, calling(address, pki.refused[which]) as client:
        with pytest.raises(Unavailable):
            start_attempt(client, JOB, SETTINGS)
        with pytest.raises(Unavailable, match="TLS"):
            client.wait_ready(timeout=0.2)
    assert not (tmp_path / JOB).exists()


def test_who_speaks_without_tls_is_not_answered(tmp_path: Path, pki: Pki) -> None:
    with serving(tmp_path, pki.server) as address, calling(address, None) as client, pytest.raises(Unavailable):
        start_attempt(client, JOB, SETTINGS)


def test_the_certificate_of_a_task_may_not_do_what_an_admin_may(tmp_path: Path, pki: Pki) -> None:
    with serving(tmp_path, pki.server) as address, calling(address, pki.task) as client:
        with pytest.raises(ConfigurationError, match="urn:twopc:role:admin"):
            start_attempt(client, JOB, SETTINGS)
        with pytest.raises(ConfigurationError, match="urn:twopc:role:admin"):
            next(client.watch(JOB))
        with AdminClient(address, tls=pki.task) as operator:
            for call in (
                operator.jobs,
                lambda: operator.describe(JOB),
                lambda: operator.stop(JOB, timeout=PATIENCE_SECONDS),
            ):
                with pytest.raises(ConfigurationError, match="urn:twopc:role:admin"):
                    call()
    assert not (tmp_path / JOB).exists()


def test_an_admin_is_answered_over_mutual_tls(tmp_path: Path, pki: Pki) -> None:
    with serving(tmp_path, pki.server) as address, AdminClient(address, tls=pki.admin) as operator:
        assert operator.jobs() == ()


def test_a_certificate_without_a_role_may_ask_for_health_only(tmp_path: Path, pki: Pki) -> None:
    nobody = pki.authority.trusted_by(pki.authority.issue("nobody", LOOPBACK))
    with serving(tmp_path, pki.server) as address:
        with calling(address, pki.admin) as admin, calling(address, nobody) as client:
            started = start_attempt(admin, JOB, SETTINGS)
            with pytest.raises(ConfigurationError, match="refused the certificate"):
                start_attempt(client, JOB, SETTINGS)
            subtask = ScriptedSubtask(address, started.attempt, 0, tls=nobody)
            eventually(lambda: subtask.ended, "a subtask without a role is refused")
            subtask.close()
            assert isinstance(subtask.heard[-1], FencedOff)
        with open_channel(address, nobody) as channel:
            answer = health_pb2_grpc.HealthStub(channel).Check(
                health_pb2.HealthCheckRequest(), timeout=PATIENCE_SECONDS
            )
            assert answer.status == health_pb2.HealthCheckResponse.SERVING


def test_a_token_is_asked_for_beside_certificates(tmp_path: Path, pki: Pki) -> None:
    with serving(tmp_path, pki.server, token="sesame") as address:
        with calling(address, pki.admin) as client, pytest.raises(ConfigurationError, match="token"):
            start_attempt(client, JOB, SETTINGS)
        with calling(address, pki.admin, token="sesame") as client:
            assert start_attempt(client, JOB, SETTINGS).attempt == 1


def test_a_coordinator_may_show_a_certificate_and_ask_for_a_token_only(tmp_path: Path, pki: Pki) -> None:
    showing = TlsFiles("", pki.server.cert, pki.server.key)
    known = pki.authority.trusted_by()
    with serving(tmp_path, showing, token="sesame") as address, calling(address, known, token="sesame") as client:
        assert start_attempt(client, JOB, SETTINGS).attempt == 1


def test_files_that_can_not_work_are_named_before_anything_is_opened(tmp_path: Path, pki: Pki) -> None:
    with pytest.raises(ConfigurationError, match="nowhere"):
        channel_credentials(TlsFiles(str(tmp_path / "nowhere.pem")))
    with pytest.raises(ConfigurationError, match="go together"):
        TlsFiles(pki.task.ca, pki.task.cert)
    with pytest.raises(ConfigurationError, match="its own key"):
        server_credentials(TlsFiles(pki.server.ca, pki.server.cert, pki.task.key))
    with pytest.raises(ConfigurationError, match="no certificate of an authority"):
        channel_credentials(TlsFiles(pki.server.key))
    with pytest.raises(ConfigurationError, match="--tls-cert"):
        server_credentials(TlsFiles(pki.server.ca))


def test_a_worker_shows_its_own_certificate_where_it_has_one() -> None:
    driver = {"coordinator": "h:1", "coordinator_ca": "/ca", "coordinator_cert": "/d", "coordinator_key": "/dk"}
    alone = RunSettings.resolve(**driver)
    assert worker_tls(alone) == driver_tls(alone) == TlsFiles("/ca", "/d", "/dk")
    apart = RunSettings.resolve(**driver, worker_cert="w", worker_key="wk")
    assert (driver_tls(apart), worker_tls(apart)) == (TlsFiles("/ca", "/d", "/dk"), TlsFiles("/ca", "w", "wk"))
    assert driver_tls(RunSettings.resolve(coordinator="h:1")) is None
    with pytest.raises(ConfigurationError, match="coordinator_ca"):
        driver_tls(RunSettings.resolve(coordinator="h:1", coordinator_cert="d", coordinator_key="dk"))


def test_a_channel_goes_nowhere_but_where_the_certificate_says(tmp_path: Path, pki: Pki) -> None:
    elsewhere = pki.authority.issue("elsewhere", role(ADMIN))
    with (
        serving(tmp_path, pki.authority.trusted_by(elsewhere)) as address,
        open_channel(address, pki.admin) as channel,
        pytest.raises(grpc.FutureTimeoutError),
    ):
        grpc.channel_ready_future(channel).result(0.5)
