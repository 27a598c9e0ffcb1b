"""One logger of ours, at DEBUG, for the messages of both Kafka clients.

They report every broken connection of every client, hundreds of lines for a broker that restarts. What a person should
know of that is said once, elsewhere (`twopc.kafka.clients.outage`, and the errors that this package raises).
"""

from __future__ import annotations

import logging
from typing import Any

log = logging.getLogger("twopc.kafka.clients")


class _Librdkafka:
    """The logger that confluent-kafka is given."""

    def log(self, _level: int, text: str, *arguments: Any) -> None:
        log.debug("librdkafka: " + text, *arguments)


class _KafkaPython(logging.Handler):
    """Takes nothing below INFO: at DEBUG kafka-python logs its settings and every request, passwords included."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)

    def emit(self, record: logging.LogRecord) -> None:
        log.debug("%s: %s", record.name, record.getMessage())


CLIENT_LOG = _Librdkafka()
"""The `logger` of every client of librdkafka."""

WARNINGS_ONLY = 4
"""The `log_level` of a client that may end with a question open: what it says at its end goes past its logger."""


def redirect_kafka_python() -> None:
    """Take kafka-python's lines away from the root logger; handlers that an application gave to it keep theirs."""
    logger = logging.getLogger("kafka")
    if not any(isinstance(handler, _KafkaPython) for handler in logger.handlers):
        logger.addHandler(_KafkaPython())
    logger.propagate = False
