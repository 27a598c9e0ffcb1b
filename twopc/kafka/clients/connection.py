"""One connection to the brokers of a cluster, through kafka-python, made when it is first needed.

Every error leaves as Unavailable (ask again) or ConfigurationError (a person must act); none is an outcome. Settings
that have worked in this process are not wrong: where they work no more, it is the brokers that are not themselves.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from random import sample
from typing import Any

from twopc.errors import ConfigurationError, TwoPhaseCommitError, Unavailable
from twopc.kafka.clients.access import access_of, check_files, security_protocol
from twopc.kafka.clients.advertised import NamedBroker, Unreached, unreached
from twopc.kafka.clients.answered import has_answered, note_answer
from twopc.kafka.clients.authorization_errors import denied
from twopc.kafka.clients.client_config import CONNECTION_IDLE_MS
from twopc.kafka.clients.client_log import redirect_kafka_python
from twopc.kafka.clients.connection_diagnosis import diagnose
from twopc.kafka.clients.control_config import control_config
from twopc.kafka.clients.kafka_python import KafkaAdminClient, errors
from twopc.kafka.clients.reachability import NoBroker, await_reachable, reason_not_reachable

redirect_kafka_python()

REQUEST_TIMEOUT_MS = 10_000
MOMENT_MS = 2_000
MAX_TIMEOUT = "transaction.max.timeout.ms"

_NOT_CONNECTED = (
    errors.KafkaConnectionError,
    errors.NodeNotReadyError,
    errors.KafkaTimeoutError,
    errors.RequestTimedOutError,
)


_worked: dict[tuple[str, frozenset[tuple[str, str]]], str] = {}
"""Servers and access that a connection was made with, and which of the servers answered last."""


class Connection:
    """Any thread may use it. `properties` are librdkafka's, of which those count that say how to get at brokers."""

    def __init__(self, bootstrap_servers: str, properties: Mapping[str, Any]) -> None:
        self.servers = bootstrap_servers
        self._properties = access_of(properties)
        self._lock = threading.Lock()
        self._client: KafkaAdminClient | None = None

    def close(self) -> None:
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def run(
        self,
        ask: Callable[[KafkaAdminClient], Any],
        coordinator: tuple[Any, str] | None = None,
        none_if: type[Exception] | tuple[()] = (),
    ) -> Any:
        """Return what was answered. `coordinator` is whom the question went to: found again if it gave no answer."""
        return self._guarded(lambda client: client._manager.run(ask, client), coordinator, none_if)

    def ask(
        self,
        request: Any,
        coordinator: tuple[Any, str] | None = None,
        none_if: type[Exception] | tuple[()] = (),
        code_of: Callable[[Any], int] = lambda _: 0,
        node: int | None = None,
    ) -> Any:
        """Return the answer of a coordinator, of a node, or of any broker, unless it has an error by `code_of`."""

        async def sent(client: KafkaAdminClient) -> Any:
            to = node if coordinator is None else await client._find_coordinator_id(coordinator[1], coordinator[0])
            return await client._manager.send(request, node_id=to)

        def answered(client: KafkaAdminClient) -> Any:
            answer = client._manager.run(sent, client)
            error = errors.for_code(code_of(answer))
            if error is not errors.NoError:
                raise error(type(request).__name__ + (f" of {coordinator[1]}" if coordinator is not None else ""))
            return answer

        return self._guarded(answered, coordinator, none_if)

    def _guarded(
        self,
        asked: Callable[[KafkaAdminClient], Any],
        coordinator: tuple[Any, str] | None,
        none_if: type[Exception] | tuple[()],
    ) -> Any:
        client = self.client()
        try:
            answer = asked(client)
            note_answer(self.servers)
            return answer
        except none_if:
            return None
        except Exception as error:
            # It may have moved to another broker: find it again next time.
            client._manager.cluster._coordinators.pop(coordinator, None)
            raise self.failure_of(error) from error

    def client(self) -> KafkaAdminClient:
        with self._lock:
            if self._client is None:
                self._client = self._connect()
            return self._client

    def _connect(self) -> KafkaAdminClient:
        check_files(self._properties)
        config = control_config(self._properties)
        settings = (self.servers, frozenset((name, str(value)) for name, value in self._properties.items()))
        if (client := _connected_again(config, _worked.get(settings))) is not None:
            return client
        reached = await_reachable(self.servers)
        problem = f"the Kafka brokers at {self.servers} can't be talked to over {security_protocol(self._properties)}"
        if settings not in _worked and (reason := diagnose(self.servers, self._properties)):
            raise ConfigurationError(f"{problem}: {reason} (properties of source and sink, or --kafka-config)")
        try:
            client, answering = _bootstrapped(config, reached)
        except errors.KafkaTimeoutError as error:
            reason = diagnose(self.servers, self._properties) or "it accepts connections, and gives no answer"
            raise NoBroker(f"{problem}: {reason}", self.servers) from error
        except Exception as error:
            raise self.failure_of(error) from error
        _worked[settings] = answering
        return client

    def failure_of(self, error: Exception) -> TwoPhaseCommitError:
        """Return an error of kafka-python as the caller of a request gets it."""
        if isinstance(error, TwoPhaseCommitError):
            return error
        detail = str(error) if isinstance(error, errors.KafkaError) else f"{type(error).__name__}: {error}"
        if isinstance(error, errors.AuthorizationError):
            return denied(error.errno, f"the Kafka brokers at {self.servers} said no ({detail})", self._properties)
        if isinstance(error, errors.InvalidTransactionTimeoutError):
            return ConfigurationError(f"transaction_timeout_ms is longer than the brokers' {MAX_TIMEOUT} ({detail})")
        if isinstance(error, (errors.UnsupportedVersionError, errors.KafkaConfigurationError)):
            return ConfigurationError(
                f"the Kafka brokers at {self.servers} can't be used ({detail}); Kafka 3.0 or newer is needed"
            )
        if isinstance(error, _NOT_CONNECTED) and (reached := self._unreached()):
            problem = f"the Kafka brokers at {self.servers} answer, but no request gets through ({detail}): {reached}"
            # Of several brokers one may be away, and what has worked is not wrong.
            was_right = not reached.all_of_them or has_answered(self.servers)
            return Unavailable(problem) if was_right else ConfigurationError(problem)
        return Unavailable(f"the Kafka brokers at {self.servers} gave no answer ({detail})")

    def _unreached(self) -> Unreached | None:
        """Return which of the brokers can't be reached where they say that they are."""
        if self._client is None:
            return None
        every = self._client._manager.cluster.brokers()
        named = [NamedBroker(each.node_id, each.host, each.port) for each in every if isinstance(each.node_id, int)]
        return unreached(self.servers, named)


def _connected_again(config: Mapping[str, Any], last: str | None) -> KafkaAdminClient | None:
    """Ask the server that answered last, so that those that don't cost their time once; None where it doesn't."""
    if last is None or reason_not_reachable(last) is not None:
        return None
    try:
        return _client_within(config, last, MOMENT_MS)
    except Exception:  # noqa: BLE001 - whoever asks all of them finds out what is wrong
        return None


def _bootstrapped(config: Mapping[str, Any], reached: Sequence[str]) -> tuple[KafkaAdminClient, str]:
    """Ask each that accepts connections, for a moment and then for longer; raise KafkaTimeoutError if none answers.

    Return a client, and who answered.

    kafka-python has all its time for the one that it draws, one that drops what comes among them. A broker that stands
    still accepts connections, and would be what a third of all connections to three wait for.
    """
    if len(reached) > 1:
        for server in sample(reached, len(reached)):
            with suppress(errors.KafkaTimeoutError):
                return _client_within(config, server, MOMENT_MS), server
    *others, last = sample(reached, len(reached))
    for server in others:
        with suppress(errors.KafkaTimeoutError):
            return _client_within(config, server, REQUEST_TIMEOUT_MS), server
    return _client_within(config, last, REQUEST_TIMEOUT_MS), last


def _client_within(config: Mapping[str, Any], server: str, timeout_ms: int) -> KafkaAdminClient:
    return KafkaAdminClient(
        **config,
        bootstrap_servers=[server],
        bootstrap_timeout_ms=timeout_ms,
        request_timeout_ms=REQUEST_TIMEOUT_MS,
        connections_max_idle_ms=CONNECTION_IDLE_MS,
        reconnect_backoff_max_ms=1_000,
    )
