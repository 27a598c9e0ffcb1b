"""The settings of a sink, as one frozen value that is checked when it is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from twopc.duration import duration_ms
from twopc.errors import ConfigurationError
from twopc.kafka.clients.client_config import checked_producer_properties
from twopc.kafka.transactions.batch_writer import BatchWriterConfig
from twopc.protocol.ids import AttemptId, checked_name
from twopc.storage.open import open_store

FLUSH_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """The options of a sink; the docstring of `kafka_sink` says what each means."""

    name: str
    decisions: str
    bootstrap_servers: str
    topic: str | None
    first_batch: int
    accept_loss: frozenset[str]
    transaction_timeout_ms: int | None
    properties: Mapping[str, Any] = field(repr=False)

    def __post_init__(self) -> None:
        checked_name("name of the sink", self.name)
        checked_producer_properties(self.properties)
        open_store(self.decisions)
        if not self.bootstrap_servers:
            raise ConfigurationError("the sink needs bootstrap_servers='HOST:PORT'")
        if self.topic == "":
            raise ConfigurationError("the sink needs the name of a topic; where none is given, rows say it in a column")
        if self.first_batch < 0:
            raise ConfigurationError(f"first_batch of the sink is the number of a batch, not {self.first_batch}")

    def checked_timeout_ms(self, longest: int) -> int:
        """Return the time-out of transactions, given the brokers' longest, which it is unless the user says less."""
        if self.transaction_timeout_ms is not None and self.transaction_timeout_ms > longest:
            raise ConfigurationError(
                f"transaction_timeout of the sink is {self.transaction_timeout_ms} ms, but the brokers allow at most "
                f"transaction.max.timeout.ms={longest}: lower the first or raise the second"
            )
        return self.transaction_timeout_ms or longest

    def writer_config(self, run: AttemptId, timeout_ms: int) -> BatchWriterConfig:
        """Return what the tasks of a run need to know."""
        return BatchWriterConfig(
            self.name, run, self.bootstrap_servers, timeout_ms, FLUSH_SECONDS, dict(self.properties)
        )


def timeout_of(given: str | timedelta | None) -> int | None:
    """Return a duration in milliseconds; None where the brokers' longest is meant."""
    try:
        return None if given is None else duration_ms(given)
    except ValueError as error:
        raise ConfigurationError(f"transaction_timeout of the sink: {error}") from error
