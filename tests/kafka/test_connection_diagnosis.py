"""Settings that don't get at brokers: what is wrong is told at once, once, and nothing is tried again for it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType
from pyspark.sql.streaming.datasource import ReadAllAvailable

from tests.jobs.cli import twopc
from tests.kafka.token_endpoint import TokenEndpoint
from tests.rpc.certificates import LOOPBACK, Authority
from twopc.errors import ConfigurationError, Unavailable
from twopc.kafka.clients import connection
from twopc.kafka.clients.connection_diagnosis import diagnose
from twopc.kafka.clients.control_client import ControlClient
from twopc.spark.streaming.source_options import SourceOptions
from twopc.spark.streaming.source_reader import KafkaStreamReader
from twopc.testing.broker_settings import LoginPort, TlsPort
from twopc.testing.local_broker import LocalBroker
from twopc.testing.ports import free_port
from twopc.testing.topics import create_topic, produce, read_topic

pytestmark = pytest.mark.broker

JOB = """
from twopc import Job, KafkaSink, KafkaSource

access = {access!r}
job = Job({name!r})
source = KafkaSource("in", properties=access)
sink = KafkaSink({topic}, properties=access)
job.source(source).map(bytes.upper).sink(sink)
"""
_LATER = "lambda record: 'out' if record.value == b'FIRST' else 'private'"

_ALLOWED = {
    "cluster": (ResourceType.BROKER, "kafka-cluster", AclOperation.DESCRIBE_CONFIGS),
    "output": (ResourceType.TOPIC, "out", AclOperation.WRITE),
    "input": (ResourceType.TOPIC, "in", AclOperation.READ),
    "group": (ResourceType.GROUP, "{name}", AclOperation.READ),
    "transactions": (ResourceType.TRANSACTIONAL_ID, "{name}", AclOperation.WRITE),
}

_SELDOM = ("cluster", "input", "transactions")


@dataclass(frozen=True, slots=True)
class GuardedBroker:
    """A broker with three ports: for everybody, for TLS with a client's certificate, and for a login."""

    plain: str
    tls: str
    login: str
    folder: Path

    @property
    def as_client(self) -> dict[str, Any]:
        return {
            "security.protocol": "SSL",
            "ssl.ca.location": str(self.folder / "authority.pem"),
            "ssl.certificate.location": str(self.folder / "client.pem"),
            "ssl.key.location": str(self.folder / "client.key"),
        }

    def run(self, tmp_path: Path, name: str, access: dict[str, Any], topic: str = "'out'") -> Any:
        (tmp_path / "job.py").write_text(JOB.format(access=access, name=name, topic=topic))
        return twopc(
            *("run", str(tmp_path / "job.py"), "-b", self.login, "--host", "process", "--until-end"),
            *("--checkpoint-dir", str(tmp_path / "checkpoints")),
        )

    def allow(self, user: str, name: str, without: str = "") -> None:
        for what, (kind, resource, operation) in _ALLOWED.items():
            if what != without:
                pattern = ResourcePatternType.LITERAL
                if kind is ResourceType.TRANSACTIONAL_ID:
                    pattern = ResourcePatternType.PREFIXED
                self.grant(user, kind, resource.format(name=name), operation, pattern)

    def grant(
        self,
        user: str,
        kind: ResourceType,
        resource: str,
        operation: AclOperation,
        pattern: ResourcePatternType = ResourcePatternType.LITERAL,
    ) -> None:
        acl = AclBinding(kind, resource, pattern, f"User:{user}", "*", operation, AclPermissionType.ALLOW)
        client = AdminClient({"bootstrap.servers": self.plain})
        [future] = client.create_acls([acl]).values()
        future.result(60)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedBroker]:
    folder = tmp_path_factory.mktemp("guarded")
    authority = Authority(folder, "authority")
    Authority(folder, "stranger")
    node, _ = authority.issue("node", LOOPBACK), authority.issue("client", LOOPBACK)
    identity = folder / "identity.pem"
    identity.write_bytes(node.key.read_bytes() + node.cert.read_bytes())
    tls = TlsPort(free_port(), identity, authority.file)
    users = dict.fromkeys(("me", *(f"no-{what}" for what in _ALLOWED)), "right")
    login = LoginPort(free_port(), users)
    with LocalBroker(folder / "kafka", tls=tls, login=login, light=True) as running:
        for topic in ("in", "out", "private"):
            create_topic(running.bootstrap_servers, topic)
        produce(running.bootstrap_servers, "in", [b"first"])
        plain = running.bootstrap_servers
        yield GuardedBroker(plain, f"127.0.0.1:{tls.port}", f"127.0.0.1:{login.port}", folder)


def login(user: str, password: str = "right", mechanism: str = "PLAIN") -> dict[str, Any]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": user,
        "sasl.password": password,
    }


Case = tuple[Callable[[GuardedBroker], tuple[str, dict[str, Any]]], tuple[str, ...]]

_WRONG: dict[str, Case] = {
    "password": (lambda at: (at.login, login("me", "canary-pw")), ("sasl.username 'me'", "Invalid username or pass")),
    "mechanism": (lambda at: (at.login, login("me", mechanism="SCRAM-SHA-256")), ("SCRAM-SHA-256 of PLAIN",)),
    "no login": (lambda at: (at.login, {}), ("set it to SASL_PLAINTEXT", "sasl.mechanism one of PLAIN")),
    "a login too many": (lambda at: (at.plain, login("me")), ("security.protocol is SASL_PLAINTEXT: set it to PLAIN",)),
    "no TLS": (lambda at: (at.tls, {}), ("security.protocol is PLAINTEXT: set it to SSL",)),
    "TLS too much": (lambda at: (at.plain, at.as_client), ("security.protocol is SSL: set it to PLAINTEXT",)),
    "authority": (
        lambda at: (at.tls, at.as_client | {"ssl.ca.location": str(at.folder / "stranger.pem")}),
        ("their certificate is not trusted", "ssl.ca.location"),
    ),
    "no certificate": (
        lambda at: (at.tls, {n: v for n, v in at.as_client.items() if n in ("security.protocol", "ssl.ca.location")}),
        ("they refuse the client's certificate", "ssl.certificate.location"),
    ),
    "a file that isn't there": (
        lambda at: (at.tls, at.as_client | {"ssl.ca.location": "/nowhere/ca.pem"}),
        ("ssl.ca.location names '/nowhere/ca.pem', which is not there",),
    ),
}


@pytest.mark.parametrize(
    "case", [pytest.param(each, marks=pytest.mark.proof if each == "mechanism" else ()) for each in _WRONG]
)
def test_what_is_wrong_with_access_is_told_at_first_contact_with_the_setting_to_look_at(
    guarded: GuardedBroker, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    where, named = _WRONG[case]
    servers, access = where(guarded)
    # A slow machine may need longer to find out; a fast one is not kept waiting.
    monkeypatch.setattr("twopc.kafka.clients.connection_diagnosis.SECONDS", 60.0)
    with ControlClient(servers, access) as client, pytest.raises(ConfigurationError) as refused:
        client.topics(["in"])
    for words in named:
        assert words in str(refused.value)
    assert "canary-pw" not in str(refused.value)


def test_nothing_is_wrong_with_settings_that_work(guarded: GuardedBroker) -> None:
    assert diagnose(guarded.tls, guarded.as_client) == ""
    assert diagnose(guarded.login, login("me")) == ""
    assert diagnose(guarded.plain, {}) == ""


def test_settings_that_have_worked_are_asked_again_when_they_are_refused_later(
    guarded: GuardedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ControlClient(guarded.login, login("me")) as client:
        client.cluster_id()
    for patience in ("MOMENT_MS", "REQUEST_TIMEOUT_MS"):
        monkeypatch.setattr(connection, patience, 1)
    monkeypatch.setattr("twopc.kafka.clients.connection.diagnose", lambda *_: "they refuse the login")
    with ControlClient(guarded.login, login("me")) as client, pytest.raises(Unavailable, match="they refuse the login"):
        client.cluster_id()


def test_a_wrong_password_ends_a_run_with_one_line(guarded: GuardedBroker, tmp_path: Path) -> None:
    began = time.monotonic()
    done = guarded.run(tmp_path, "wrong", login("me", "canary-pw"))
    assert done.code == 2
    assert len(done.err.splitlines()) == 1, done.err
    assert "sasl.username 'me'" in done.err
    assert "canary-pw" not in done.err + done.out
    logging.getLogger(__name__).info("told after %.1f s", time.monotonic() - began)


_NEEDED = {
    "cluster": "DescribeConfigs on the cluster",
    "output": "Write",
    "input": "Read",
    "group": "Read on consumer group 'lacks-group'",
    "transactions": "Write and Describe on transactional ids",
}


@pytest.mark.parametrize(
    "lacking", ["output", "group", *(pytest.param(each, marks=pytest.mark.proof) for each in _SELDOM)]
)
def test_an_acl_that_is_missing_is_named_and_no_restart_is_tried_for_it(
    guarded: GuardedBroker, tmp_path: Path, lacking: str
) -> None:
    user, name = f"no-{lacking}", f"lacks-{lacking}"
    guarded.allow(user, name, without=lacking)
    done = guarded.run(tmp_path, name, login(user))
    assert done.code == 2, done.err
    error = next(line for line in done.err.splitlines() if line.startswith("error: "))
    assert _NEEDED[lacking] in error
    assert "kafka-acls.sh" in error
    assert "trying again" not in done.err
    assert "Purged" not in done.err


def test_with_all_acls_a_job_runs_and_a_topic_that_it_may_not_write_to_later_ends_it(
    guarded: GuardedBroker, tmp_path: Path
) -> None:
    guarded.allow("me", "let-in")
    done = guarded.run(tmp_path, "let-in", login("me"))
    assert done.code == 0, done.err
    assert {record.value for record in read_topic(guarded.plain, "out")} == {b"FIRST"}
    guarded.grant("me", ResourceType.TOPIC, "private", AclOperation.DESCRIBE)
    produce(guarded.plain, "in", [b"second"])
    done = guarded.run(tmp_path, "let-in", login("me"), topic=_LATER)
    assert done.code == 2, done.err
    assert "producing to private failed" in done.err
    assert "Needed is Read on the topic if it is the input, Write if it is the output" in done.err
    assert "trying again" not in done.err
    assert "Purged" not in done.err


def by_token(endpoint: str, client: str, secret: str = "right") -> dict[str, Any]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.client.id": client,
        "sasl.oauthbearer.client.secret": secret,
        "sasl.oauthbearer.token.endpoint.url": endpoint,
    }


def test_with_a_token_both_clients_get_in_and_acls_are_those_of_its_subject(
    guarded: GuardedBroker, tmp_path: Path
) -> None:
    guarded.allow("robot", "by-token")
    with TokenEndpoint({"robot": "right", "stranger": "right"}) as endpoint:
        done = guarded.run(tmp_path, "by-token", by_token(endpoint.url, "robot"))
        assert done.code == 0, done.err
        assert set(endpoint.given) == {"robot"}
        denied = guarded.run(tmp_path, "by-token", by_token(endpoint.url, "stranger"))
    assert denied.code == 2, denied.err
    assert "for sasl.oauthbearer.client.id 'stranger'" in denied.err


def test_a_client_that_gets_no_token_is_named_with_the_settings_to_look_at(guarded: GuardedBroker) -> None:
    with (
        TokenEndpoint({"robot": "right"}) as endpoint,
        ControlClient(guarded.login, by_token(endpoint.url, "robot", "canary-pw")) as client,
        pytest.raises(ConfigurationError) as refused,
    ):
        client.cluster_id()
    assert "gives no token to 'robot' (HTTP 401): check sasl.oauthbearer.client.id" in str(refused.value)
    assert "canary-pw" not in str(refused.value)


def test_an_endpoint_that_does_not_answer_is_asked_again(guarded: GuardedBroker) -> None:
    nobody = f"http://127.0.0.1:{free_port()}/token"
    with (
        ControlClient(guarded.login, by_token(nobody, "robot")) as client,
        pytest.raises(Unavailable, match=r"check sasl\.oauthbearer\.token\.endpoint\.url"),
    ):
        client.cluster_id()


def test_a_token_is_used_for_all_connections_of_a_process(guarded: GuardedBroker) -> None:
    with TokenEndpoint({"robot": "right"}) as endpoint:
        access = by_token(endpoint.url, "robot")
        for _ in range(3):
            with ControlClient(guarded.login, access) as client:
                client.cluster_id()
        # One for librdkafka, which looked at first what is wrong, and one for all others.
        assert endpoint.given == ["robot", "robot"]


def read_by_a_query(servers: str, access: dict[str, Any]) -> list[bytes]:
    """What the first rows of a query of Spark's are, read in this process."""
    options = {f"kafka.{name}": str(value) for name, value in access.items()}
    reader = KafkaStreamReader(SourceOptions.of(options | {"kafka.bootstrap.servers": servers, "subscribe": "in"}))
    begun = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    parts = reader.partitions(begun, reader.latestOffset(begun, ReadAllAvailable()))
    reader.stop()
    return [row["value"] for part in parts for batch in reader.read(part) for row in batch.to_pylist()]


def test_a_query_of_sparks_reads_over_tls_and_with_a_login_that_may_read_the_topic_and_nothing_else(
    guarded: GuardedBroker,
) -> None:
    guarded.grant("no-group", ResourceType.TOPIC, "in", AclOperation.READ)
    assert read_by_a_query(guarded.login, login("no-group"))[0] == b"first"
    guarded.grant("CN=client", ResourceType.TOPIC, "in", AclOperation.READ)
    assert read_by_a_query(guarded.tls, guarded.as_client)[0] == b"first"


def test_a_query_of_sparks_tells_what_is_wrong_with_its_login_and_not_the_password(guarded: GuardedBroker) -> None:
    with pytest.raises(ConfigurationError, match=r"sasl.username 'me'") as refused:
        read_by_a_query(guarded.login, login("me", "canary-pw"))
    assert "canary-pw" not in str(refused.value)
