"""Questions that the asking thread sends itself, and whose answers it receives itself.

kafka-python serves its connections by an event loop on a thread of its own. A question then crosses two threads, and
costs four times the CPU, under the lock that the data loop beside it needs. What a subtask asks at every checkpoint
goes directly (`docs/experiments/frequent_checkpoints.md`). kafka-python still connects, so TLS, SASL and the brokers'
versions are its affair; then the socket is taken out of its loop.

Invariant: one question at a time is on a line, and a line on which one failed is never used again. An answer that comes
late would be taken for that to the next question.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any, Self

from kafka import KafkaAdminClient, errors
from kafka.net.connection import KafkaConnection

from twopc.context import SubtaskContext
from twopc.kafka.access import access_of
from twopc.kafka.connection import REQUEST_TIMEOUT_MS, Connection
from twopc.kafka.identity import Identity
from twopc.kafka.leaders import LeaderClient

TIMEOUT_SECONDS = REQUEST_TIMEOUT_MS / 1000
_RECEIVED_BYTES = 65_536


class _Line:
    """A socket to one broker, and the protocol that is spoken on it."""

    def __init__(self, client: KafkaAdminClient, node: int) -> None:
        self._manager = client._manager
        self._connection = client._manager.run(_opened, client, node)
        self._socket = self._connection.transport._sock
        self._socket.settimeout(TIMEOUT_SECONDS)

    def ask(self, request: Any) -> Any:
        protocol = self._connection.parser
        if request.API_VERSION is None:
            request.API_VERSION = self._connection.broker_version_data.api_version(request)
        asked = protocol.send_request(request)
        self._socket.sendall(protocol.send_bytes())
        answers: list[tuple[int, Any]] = []
        while not answers:
            answers = protocol.receive_bytes(self._received())
        [(answered, answer)] = answers
        if answered != asked:
            raise errors.CorrelationIdError(f"question {asked} was answered with the answer to {answered}")
        return answer

    def _received(self) -> bytes:
        data: bytes = self._socket.recv(_RECEIVED_BYTES)
        if not data:
            raise errors.KafkaConnectionError("the broker hung up")
        return data

    def close(self, error: Exception | None = None) -> None:
        """Hang up. After an error kafka-python asks anew which brokers there are, as after one of its own."""
        self._manager.call_soon(self._connection.close, error)


async def _opened(client: KafkaAdminClient, node: int) -> KafkaConnection:
    """Connect as kafka-python does, and take the connection out of its loop."""
    manager = client._manager
    connection = KafkaConnection(
        manager._net, node_id=node, broker_version_data=manager.broker_version_data, **manager.config
    )
    connection.close_future.add_errback(lambda _: manager.cluster.request_update())
    timeout_at = time.monotonic() + TIMEOUT_SECONDS
    try:
        broker = manager.cluster.broker_metadata(node)
        if broker is None:
            raise errors.UnknownBrokerIdError(node)
        connection.connection_made(await manager._build_transport(broker, timeout_at=timeout_at))
    except Exception as error:
        connection.connection_lost(error)
        raise
    await connection.initialize(timeout_at=timeout_at)
    await connection.init_future
    # It would authenticate again in the middle of a question. A broker that wants this hangs up instead.
    connection._reauth.cancel()
    connection.transport.pause_reading()
    manager._net.cancel(connection.transport._read_task)
    return connection


class DirectConnection(Connection):
    """Any thread may use it; of two that ask one broker at once, one waits.

    `_lines` are those on which nobody asks now.
    """

    def __init__(self, bootstrap_servers: str, config: Mapping[str, Any]) -> None:
        super().__init__(bootstrap_servers, config)
        self._locks: dict[int, threading.Lock] = {}
        self._lines: dict[int, _Line] = {}

    def close(self) -> None:
        for node, lock in self._locks.copy().items():
            with lock:
                line = self._lines.pop(node, None)
                if line is not None:
                    line.close()
        super().close()

    def _answer(
        self, client: KafkaAdminClient, request: Any, coordinator: tuple[Any, str] | None, node: int | None
    ) -> Any:
        node = self._node(client, coordinator) if node is None else node
        with self._locks.setdefault(node, threading.Lock()):
            line = self._lines.pop(node, None) or _Line(client, node)
            try:
                answer = line.ask(request)
            except BaseException:
                line.close(errors.KafkaConnectionError("a question got no answer"))
                raise
            self._lines[node] = line
            return answer

    def _node(self, client: KafkaAdminClient, coordinator: tuple[Any, str] | None) -> int:
        """Return whom to ask: the coordinator that is known, or else found, and for the rest a broker at hand."""
        manager = client._manager
        if coordinator is None:
            node = next(iter(self._lines.copy()), None)
            node = manager.run(manager.least_loaded_node) if node is None else node
        else:
            kind, key = coordinator
            node = manager.cluster.get_coordinator(key, kind)
            node = manager.run(client._find_coordinator_id, key, kind) if node is None else node
        if node is None:
            raise errors.NodeNotReadyError("no broker is known")
        return int(node)


class SubtaskClient(LeaderClient):
    """A LeaderClient for those who ask beside a data loop, and what they want to stay the same."""

    connection = DirectConnection

    def __init__(self, bootstrap_servers: str, properties: Mapping[str, Any]) -> None:
        super().__init__(bootstrap_servers, properties)
        self.identity = Identity(self)
        self._users = 1

    @classmethod
    def of(cls, context: SubtaskContext, bootstrap_servers: str, properties: Mapping[str, Any]) -> Self:
        """Return the one that this subtask's source and sink share; it closes when all who got it have closed it."""
        key = (cls, bootstrap_servers, repr(sorted(access_of(properties).items())))
        client: Self | None = context.shared.get(key)
        if client is None or not client._users:
            client = context.shared[key] = cls(bootstrap_servers, properties)
        else:
            client._users += 1
        return client

    def close(self) -> None:
        self._users -= 1
        if self._users <= 0:
            super().close()
