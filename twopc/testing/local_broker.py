"""A real Kafka, from its own jars, on this machine: one node or several, in a data folder that survives it.

The same folder can be opened by another process later (`LocalBroker.open`): what is needed for that stands in
cluster.json, and which processes run is read from the folder each time, never remembered.
"""

from __future__ import annotations

import base64
import json
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

from twopc.class_archive import ClassArchive
from twopc.errors import ConfigurationError, Unavailable
from twopc.java import find_java
from twopc.testing.broker import Broker
from twopc.testing.broker_node import BrokerNode
from twopc.testing.broker_settings import (
    BUSY,
    LOOPBACK,
    LoginPort,
    NodePorts,
    ProxiedPort,
    TlsPort,
    server_properties,
)
from twopc.testing.jars import ensure_jars, jars_folder
from twopc.testing.ports import free_ports, is_free
from twopc.testing.readiness import is_ready
from twopc.user_folders import temporary_folder

READY_TIMEOUT_S = 180
_POLL_S = 0.05
_LIGHT_JVM_OPTIONS = ("-XX:TieredStopAtLevel=1",)
_JVM_OPTIONS = ("-Xmx1g", "-XX:+UseSerialGC", "-Djava.awt.headless=true", "--enable-native-access=ALL-UNNAMED")


class LocalBroker(Broker):
    """Kafka nodes on loopback; node i listens on `port + i`, or each on a free port where none is asked for.

    `transaction_version` is the broker's side of the transaction protocol: 2, or 1 as before Kafka 4.0. A `proxied`
    node listens on a second port too, behind `proxy_routes`, and is served only when proxies stand there; `tls` has a
    lone node speak TLS on another one, `login` has it want a login there. `light` makes its JVM compile as little as
    it can, and the node be back soon after it is killed: for tests, which start brokers often and give them little to
    do.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        port: int | None = None,
        brokers: int = 1,
        transaction_version: int = 2,
        proxied: bool = False,
        tls: TlsPort | None = None,
        login: LoginPort | None = None,
        light: bool = False,
    ) -> None:
        if brokers < 1:
            raise ConfigurationError(f"brokers must be at least 1, but is {brokers}")
        if port is not None and not 0 < port <= 65_536 - brokers:
            raise ConfigurationError(f"port must be from 1 to {65_536 - brokers}, but is {port}")
        self.data_dir = data_dir.absolute()
        taken = [own.port for own in (tls, login) if own is not None]
        self._ports = free_ports(brokers, avoid=taken) if port is None else list(range(port, port + brokers))
        self._transaction_version = transaction_version
        self._light = light
        self._tls = tls
        self._login = login
        own = free_ports(2 * brokers, avoid=[*taken, *self._ports]) if proxied else []
        self._taken = [*taken, *self._ports, *own]
        self.proxy_routes = tuple(ProxiedPort(*pair) for pair in zip(own[::2], own[1::2], strict=True))
        self.nodes = tuple(BrokerNode(self.data_dir / f"node-{index}") for index in range(1, brokers + 1))

    @classmethod
    def open(cls, data_dir: Path) -> Self | None:
        """The broker whose folder this is, running or not; None where there was never one."""
        try:
            ports = json.loads((data_dir / "cluster.json").read_text())["ports"]
        except FileNotFoundError:
            return None
        except NotADirectoryError as error:
            raise ConfigurationError(f"{data_dir} is a file, and a broker needs a folder: name another") from error
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigurationError(f"{data_dir}/cluster.json can't be read ({error}): delete {data_dir}") from error
        broker = cls(data_dir, brokers=len(ports))
        broker._ports = broker._taken = ports
        return broker

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"{LOOPBACK}:{port}" for port in self._ports)

    @property
    def proxied_servers(self) -> str:
        """host:port of the proxies, for clients whose every request is to go through them."""
        return ",".join(f"{LOOPBACK}:{route.advertised}" for route in self.proxy_routes)

    @property
    def running(self) -> bool:
        """Whether all of its nodes have a process."""
        return all(node.pid is not None for node in self.nodes)

    @property
    def any_running(self) -> bool:
        return any(node.pid is not None for node in self.nodes)

    def start(self) -> None:
        if self.running:
            return
        jars = ensure_jars()
        tool = self._java(jars)
        self._check_ports()
        cluster_id = self._configure()
        try:
            with ThreadPoolExecutor() as pool:
                list(pool.map(lambda node: node.format(tool, cluster_id, self._transaction_version), self.nodes))
            for node in self.nodes:
                self._spawn(node, jars)
            self._await_ready()
        except BaseException:
            self.kill()
            raise

    def start_node(self, node: BrokerNode) -> None:
        """Start one node again that was stopped or killed while the others ran on."""
        self._spawn(node, ensure_jars())
        self._await_ready()

    def stop(self) -> None:
        # All at once: a node that goes alone waits for the others to take over from it.
        with ThreadPoolExecutor() as pool:
            list(pool.map(BrokerNode.terminate, self.nodes))
        archive = ClassArchive(find_java(), jars_folder())
        for node in self.nodes:
            archive.adopt(node.folder)

    def kill(self) -> None:
        for node in self.nodes:
            node.kill()

    def _spawn(self, node: BrokerNode, jars: Path) -> None:
        if node.pid is None:
            node.spawn(self._java(jars, *ClassArchive(find_java(), jars).make(node.folder)))

    def _java(self, jars: Path, *options: str) -> list[str]:
        java = find_java()
        log_settings = Path(__file__).with_name("log4j2.properties")
        return [
            str(java),
            *_JVM_OPTIONS,
            *(_LIGHT_JVM_OPTIONS if self._light else ()),
            *ClassArchive(java, jars).use(),
            *options,
            f"-Dlog4j2.configurationFile={log_settings}",
            f"-Djava.io.tmpdir={temporary_folder()}",
            *("-cp", f"{jars}/*"),
        ]

    def _check_ports(self) -> None:
        for node, port in zip(self.nodes, self._ports, strict=True):
            if node.pid is None and not is_free(port):
                raise ConfigurationError(
                    f"port {port} is taken: choose another port (--port), or stop what listens on {LOOPBACK}:{port}"
                )

    def _configure(self) -> str:
        try:
            self.data_dir.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigurationError(
                f"{self.data_dir} can't be made ({error.strerror}): name another folder"
            ) from error
        file = self.data_dir / "cluster.json"
        stored = json.loads(file.read_text()) if file.exists() else None
        if stored is not None and len(stored["ports"]) != len(self.nodes):
            raise ConfigurationError(
                f"{self.data_dir} holds a cluster of {len(stored['ports'])}, not of {len(self.nodes)}: "
                f"start it with --brokers {len(stored['ports'])}, or choose another --data-dir"
            )
        controllers = stored["controllers"] if stored else []
        # Nodes that still run know each other by these ports; otherwise somebody else may have taken them meanwhile.
        if not self.any_running and not (controllers and all(map(is_free, controllers))):
            controllers = free_ports(len(self.nodes), avoid=self._taken)
        cluster_id = stored["id"] if stored else _new_cluster_id()
        file.write_text(json.dumps({"id": cluster_id, "ports": self._ports, "controllers": controllers}))
        routes = self.proxy_routes or [None] * len(self.nodes)
        ports = [
            NodePorts(*each, tls=self._tls, login=self._login)
            for each in zip(self._ports, controllers, routes, strict=True)
        ]
        for index, node in enumerate(self.nodes, start=1):
            node.configure(server_properties(index, ports, node.data, {} if self._light else BUSY))
        return str(cluster_id)

    def _await_ready(self) -> None:
        deadline = time.monotonic() + READY_TIMEOUT_S
        while not is_ready(self.bootstrap_servers, len(self.nodes)):
            for node in self.nodes:
                if node.pid is None:
                    raise Unavailable(f"Kafka ended while it started: {node.complaint()} (more in {node.log})")
            if time.monotonic() > deadline:
                raise Unavailable(f"Kafka was not ready after {READY_TIMEOUT_S} s: see {self.nodes[0].log}")
            time.sleep(_POLL_S)


def end_broker_of(data_dir: Path) -> None:
    """Kill what still runs in a folder that is nobody's any more."""
    broker = LocalBroker.open(data_dir)
    if broker is not None:
        broker.kill()


def _new_cluster_id() -> str:
    """As Kafka makes its own: one that began with a dash would be taken for an option."""
    while (made := base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        pass
    return made
