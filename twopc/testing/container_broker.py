"""Kafka in a container, behind the same interface as the local one; the only module that imports testcontainers."""

from __future__ import annotations

import shutil
import subprocess
import time

from testcontainers.core.container import DockerContainer

from twopc.errors import Unavailable
from twopc.testing.broker import Broker
from twopc.testing.broker_settings import LOOPBACK, shared_settings
from twopc.testing.jars import KAFKA_VERSION
from twopc.testing.ports import free_port
from twopc.testing.readiness import is_ready

IMAGE = f"apache/kafka:{KAFKA_VERSION}"
READY_TIMEOUT_S = 90


def why_not() -> str | None:
    """The reason why no container can be started here; None when one can."""
    docker = shutil.which("docker")
    if docker is None:
        return "no Docker: there is no docker command on PATH"
    try:
        asked = subprocess.run([docker, "info"], capture_output=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return "no Docker: docker info does not answer"
    return None if asked.returncode == 0 else "no Docker: its daemon does not answer"


class ContainerBroker(Broker):
    """One Kafka node in one container, which lives until this object is closed."""

    def __init__(self) -> None:
        self._port = free_port()
        self._container: DockerContainer | None = None

    @property
    def bootstrap_servers(self) -> str:
        return f"{LOOPBACK}:{self._port}"

    def start(self) -> None:
        if self._container is None:
            self._container = _container(self._port)
            self._container.start()
        else:
            # The same container, not a new one: its data is in it.
            self._container.get_wrapped_container().start()
        self._await_ready()

    def stop(self) -> None:
        self._end("stop")

    def kill(self) -> None:
        self._end("kill")

    def close(self) -> None:
        """Remove the container and its data."""
        if self._container is not None:
            self._container.stop()
            self._container = None

    def _end(self, how: str) -> None:
        if self._container is None:
            return
        wrapped = self._container.get_wrapped_container()
        wrapped.reload()
        if wrapped.status == "running":
            getattr(wrapped, how)()
            wrapped.wait()

    def _await_ready(self) -> None:
        deadline = time.monotonic() + READY_TIMEOUT_S
        while not is_ready(self.bootstrap_servers, brokers=1):
            if time.monotonic() > deadline:
                raise Unavailable(f"{IMAGE} was not ready after {READY_TIMEOUT_S} s: see docker logs")
            time.sleep(0.1)


def _container(port: int) -> DockerContainer:
    settings = shared_settings(brokers=1) | {
        "node.id": 1,
        "process.roles": "broker,controller",
        # The same port inside and outside: the broker also dials itself at the address that it advertises.
        "listeners": f"CLIENTS://:{port},CONTROLLER://:{port + 1}",
        "advertised.listeners": f"CLIENTS://{LOOPBACK}:{port}",
        "listener.security.protocol.map": "CLIENTS:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "CLIENTS",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"1@{LOOPBACK}:{port + 1}",
    }
    container = DockerContainer(IMAGE).with_bind_ports(port, port)
    for name, value in settings.items():
        container = container.with_env(f"KAFKA_{name.upper().replace('.', '_')}", str(value))
    return container
