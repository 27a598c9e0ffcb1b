"""One connection to the brokers of a cluster, through kafka-python, made when it is first needed.

Every error leaves as Unavailable (ask again) or ConfigurationError (a person must act); none is an outcome.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any

from kafka import KafkaAdminClient, errors

from twopc.errors import ConfigurationError, TwoPhaseCommitError, Unavailable
from twopc.kafka.reachable import await_reachable
from twopc.kafka.tls_trouble import tls_trouble

# Silent unless the application listens; and at DEBUG it would log its settings, passwords included.
logging.getLogger("kafka").addHandler(logging.NullHandler())
logging.getLogger("kafka.admin.client").setLevel(logging.INFO)
# It warns that its thread had to wait a moment, which beside a busy data loop it has to.
logging.getLogger("kafka.net.selector").setLevel(logging.ERROR)

REQUEST_TIMEOUT_MS = 10_000
MAX_TIMEOUT = "transaction.max.timeout.ms"


class Connection:
    """Any thread may use it."""

    def __init__(self, bootstrap_servers: str, config: Mapping[str, Any]) -> None:
        self.servers = bootstrap_servers
        self._config = dict(config)
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
    ) -> Any:
        """Return the answer of a coordinator, or of any broker, unless `code_of` finds an error code in it."""

        def answered(client: KafkaAdminClient) -> Any:
            answer = self._answer(client, request, coordinator)
            error = errors.for_code(code_of(answer))
            if error is not errors.NoError:
                raise error(type(request).__name__ + (f" of {coordinator[1]}" if coordinator is not None else ""))
            return answer

        return self._guarded(answered, coordinator, none_if)

    def _answer(self, client: KafkaAdminClient, request: Any, coordinator: tuple[Any, str] | None) -> Any:
        async def ask(client: KafkaAdminClient) -> Any:
            node = None if coordinator is None else await client._find_coordinator_id(coordinator[1], coordinator[0])
            return await client._manager.send(request, node_id=node)

        return client._manager.run(ask, client)

    def _guarded(
        self,
        asked: Callable[[KafkaAdminClient], Any],
        coordinator: tuple[Any, str] | None,
        none_if: type[Exception] | tuple[()],
    ) -> Any:
        client = self.client()
        try:
            return asked(client)
        except none_if:
            return None
        except Exception as error:
            # It may have moved to another broker: find it again next time.
            client._manager.cluster._coordinators.pop(coordinator, None)
            raise failure_of(error, self.servers) from error

    def client(self) -> KafkaAdminClient:
        with self._lock:
            if self._client is None:
                self._client = self._connect()
            return self._client

    def _connect(self) -> KafkaAdminClient:
        await_reachable(self.servers)
        try:
            return KafkaAdminClient(
                **self._config,
                bootstrap_servers=self.servers.split(","),
                bootstrap_timeout_ms=REQUEST_TIMEOUT_MS,
                request_timeout_ms=REQUEST_TIMEOUT_MS,
                reconnect_backoff_max_ms=1_000,
            )
        except Exception as error:
            spoken = self._config.get("security_protocol", "PLAINTEXT")
            said = f"{self.servers} over {spoken}"
            if isinstance(error, errors.KafkaTimeoutError):
                trouble = next(filter(None, (tls_trouble(each, self._config) for each in self.servers.split(","))), "")
                if trouble:
                    # A broker that is about to come back fails in this way too: it is worth asking again.
                    raise Unavailable(f"the Kafka brokers at {said} can't be talked to: {trouble}") from error
            raise failure_of(error, said) from error


def failure_of(error: Exception, servers: str) -> TwoPhaseCommitError:
    """What an error of kafka-python means to whoever asked."""
    if isinstance(error, TwoPhaseCommitError):
        return error
    detail = str(error) if isinstance(error, errors.KafkaError) else f"{type(error).__name__}: {error}"
    if isinstance(error, (errors.AuthorizationError, errors.SaslAuthenticationFailedError)):
        return ConfigurationError(
            f"the Kafka brokers at {servers} refuse access ({detail}): check credentials and ACLs"
        )
    if isinstance(error, errors.InvalidTransactionTimeoutError):
        return ConfigurationError(f"transaction_timeout_ms is longer than the brokers' {MAX_TIMEOUT} ({detail})")
    if isinstance(error, (errors.UnsupportedVersionError, errors.KafkaConfigurationError)):
        return ConfigurationError(
            f"the Kafka brokers at {servers} can't be used ({detail}); Kafka 3.0 or newer is needed"
        )
    return Unavailable(f"the Kafka brokers at {servers} gave no answer ({detail})")
