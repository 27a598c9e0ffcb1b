"""The settings of a local broker: quick to start and to recover, small, and without a limit on a transaction's age."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from twopc.config import NO_TIMEOUT_MS

LOOPBACK = "127.0.0.1"
MAX_REPLICATION = 3
INTERNAL_TOPIC_PARTITIONS = 4


@dataclass(frozen=True, slots=True)
class ProxiedPort:
    """A port of the node, and the one that it tells its clients, and other brokers, to use in its place."""

    listens: int
    advertised: int


@dataclass(frozen=True, slots=True)
class TlsPort:
    """A port where a node speaks TLS, and only to whom `trusted` has signed; `identity` is its key and certificate.

    Both are PEM files, the key unencrypted.
    """

    port: int
    identity: Path
    trusted: Path


@dataclass(frozen=True, slots=True)
class LoginPort:
    """A port where a node wants a login, without TLS: one of `users` by PLAIN, or any OAUTHBEARER token, unsigned.

    Who logs in may do what ACLs allow, and nothing without one; who comes by the other ports may do everything.
    """

    port: int
    users: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class NodePorts:
    """The ports of one node: for clients and brokers, for controllers, behind a proxy, by TLS, and with a login."""

    clients: int
    controller: int
    proxied: ProxiedPort | None = None
    tls: TlsPort | None = None
    login: LoginPort | None = None


def server_properties(
    node_id: int, ports: Sequence[NodePorts], log_dir: Path, own: Mapping[str, object] = MappingProxyType({})
) -> str:
    """The server.properties of node `node_id` (from 1) in a cluster that listens on `ports`; `own` go before ours."""
    settings = _identity(node_id, ports, log_dir) | shared_settings(len(ports)) | dict(own)
    return "".join(f"{name}={value}\n" for name, value in settings.items())


def shared_settings(brokers: int) -> dict[str, object]:
    """The settings that all nodes of a cluster of so many share."""
    quick = _QUICK if brokers >= MAX_REPLICATION else _QUICK | _LONE_VOTER
    return _replication(brokers) | quick | _SMALL | _LASTING


def _identity(node_id: int, ports: Sequence[NodePorts], log_dir: Path) -> dict[str, object]:
    own = ports[node_id - 1]
    # Two voters would both be needed: of a pair of nodes only one votes.
    voting = ports[:MAX_REPLICATION] if len(ports) >= MAX_REPLICATION else ports[:1]
    voters = [f"{index}@{LOOPBACK}:{port.controller}" for index, port in enumerate(voting, start=1)]
    is_voter = node_id <= len(voters)
    listening = advertised = [f"CLIENTS://{LOOPBACK}:{own.clients}"]
    if own.proxied is not None:
        listening = [*listening, f"PROXIED://{LOOPBACK}:{own.proxied.listens}"]
        advertised = [*advertised, f"PROXIED://{LOOPBACK}:{own.proxied.advertised}"]
    if own.tls is not None:
        listening = [*listening, f"TLS://{LOOPBACK}:{own.tls.port}"]
        advertised = [*advertised, f"TLS://{LOOPBACK}:{own.tls.port}"]
    if own.login is not None:
        listening = [*listening, f"LOGIN://{LOOPBACK}:{own.login.port}"]
        advertised = [*advertised, f"LOGIN://{LOOPBACK}:{own.login.port}"]
    if is_voter:
        listening = [*listening, f"CONTROLLER://{LOOPBACK}:{own.controller}"]
    return {
        "node.id": node_id,
        "process.roles": "broker,controller" if is_voter else "broker",
        "listeners": ",".join(listening),
        "advertised.listeners": ",".join(advertised),
        "listener.security.protocol.map": (
            "CLIENTS:PLAINTEXT,PROXIED:PLAINTEXT,CONTROLLER:PLAINTEXT,TLS:SSL,LOGIN:SASL_PLAINTEXT"
        ),
        # Through the proxy too: a broker sends transaction markers as a client of brokers, itself included.
        "inter.broker.listener.name": "CLIENTS" if own.proxied is None else "PROXIED",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": ",".join(voters),
        "log.dirs": log_dir,
        **({} if own.tls is None else _tls(own.tls)),
        **({} if own.login is None else _login(own.login)),
    }


def _tls(own: TlsPort) -> dict[str, object]:
    return {
        "listener.name.tls.ssl.keystore.type": "PEM",
        "listener.name.tls.ssl.keystore.location": own.identity,
        "listener.name.tls.ssl.truststore.type": "PEM",
        "listener.name.tls.ssl.truststore.location": own.trusted,
        "listener.name.tls.ssl.client.auth": "required",
    }


def _login(own: LoginPort) -> dict[str, object]:
    module = "org.apache.kafka.common.security"
    users = " ".join(f'user_{name}="{password}"' for name, password in own.users.items())
    return {
        "listener.name.login.sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER",
        "listener.name.login.plain.sasl.jaas.config": f"{module}.plain.PlainLoginModule required {users};",
        "listener.name.login.oauthbearer.sasl.jaas.config": (
            f'{module}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";'
        ),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }


def _replication(brokers: int) -> dict[str, object]:
    factor = min(brokers, MAX_REPLICATION)
    # With three replicas one broker may be away; with fewer, none.
    in_sync = 2 if factor == MAX_REPLICATION else 1
    return {
        "default.replication.factor": factor,
        "min.insync.replicas": in_sync,
        "offsets.topic.replication.factor": factor,
        "transaction.state.log.replication.factor": factor,
        "transaction.state.log.min.isr": in_sync,
    }


#: After `kill -9` these decide how soon the broker serves again: 2 s in place of 12.
_QUICK: dict[str, object] = {
    # A shorter one makes a machine that is busy with other things look like a dead broker, and leaders move.
    "broker.session.timeout.ms": 2000,
    "broker.heartbeat.interval.ms": 200,
    "controlled.shutdown.retry.backoff.ms": 200,
    "group.initial.rebalance.delay.ms": 0,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500,
}

#: Where one node votes, nobody disputes its election, and no leader can move. Several need Kafka's own patience.
_LONE_VOTER: dict[str, object] = {
    "broker.session.timeout.ms": 1000,
    "controller.quorum.election.timeout.ms": 300,
    "controller.quorum.fetch.timeout.ms": 400,
}

BUSY: dict[str, object] = {
    # Given all the work that a machine can do, a node may be heard of seconds late. If it is fenced for that, clients
    # are told of a cluster without brokers.
    "broker.session.timeout.ms": 9000,
}

_SMALL: dict[str, object] = {
    "num.partitions": 1,
    "offsets.topic.num.partitions": INTERNAL_TOPIC_PARTITIONS,
    "transaction.state.log.num.partitions": INTERNAL_TOPIC_PARTITIONS,
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
    "share.coordinator.state.topic.num.partitions": 1,
    "num.network.threads": 2,
    "num.io.threads": 4,
    "log.cleaner.dedupe.buffer.size": 4_194_304,
}

#: Records of any age stay, whatever timestamp they carry, and a transaction may stay open as long as it needs.
_LASTING: dict[str, object] = {
    "log.retention.ms": -1,
    "log.retention.bytes": -1,
    "auto.create.topics.enable": "false",
    "transaction.max.timeout.ms": NO_TIMEOUT_MS,
}
