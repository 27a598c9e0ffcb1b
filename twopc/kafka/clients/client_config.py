"""The settings of every client of librdkafka here: tuned and guarded.

A user's properties override the tuning. Those that would break a promise are refused, with where to say it instead.
The tuning is measured; what each setting is worth stands in the design's account of the data path.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twopc.config import NO_TIMEOUT_MS
from twopc.errors import ConfigurationError
from twopc.kafka.clients.access import check_access, rooted
from twopc.kafka.clients.client_log import CLIENT_LOG

_OURS = "it is set by the framework, because exactly-once depends on it"
_CODE = "it loads code into every process of the job"
_SERVERS = "say bootstrap_servers=... instead"

_REFUSED_EVERYWHERE = {
    "bootstrap.servers": _SERVERS,
    "metadata.broker.list": _SERVERS,
    "plugin.library.paths": _CODE,
}
_REFUSED_BY_CONSUMER = _REFUSED_EVERYWHERE | {
    "group.id": "say group_id=... instead",
    "auto.offset.reset": "say start=StartingOffsets... instead",
    "enable.auto.commit": _OURS,
    "enable.auto.offset.store": _OURS,
    "enable.partition.eof": _OURS,
    "isolation.level": _OURS,
    "group.instance.id": _OURS,
    "group.protocol": _OURS,
}
_REFUSED_BY_QUERY = _REFUSED_BY_CONSUMER | {
    "group.id": "a query of Spark's has no consumer group: Spark keeps where it stands",
    "auto.offset.reset": "say startingOffsets instead",
}
_REFUSED_BY_PRODUCER = _REFUSED_EVERYWHERE | {
    "transactional.id": "say transactional_id_prefix=... instead",
    "transaction.timeout.ms": "say transaction_timeout_ms=... in the settings of the run instead",
    "enable.idempotence": _OURS,
    "acks": _OURS,
    "request.required.acks": _OURS,
    "delivery.report.only.error": _OURS,
}

CONNECTION_IDLE_MS = 30_000
"""A connection without traffic is closed after so long, and made anew when it is needed.

Firewalls and load balancers forget idle connections without a word, most of them after one to ten minutes: the next
request then waits for its own time-out, a minute. librdkafka keeps them for ever by default.
"""

_CONNECTION = {"connections.max.idle.ms": CONNECTION_IDLE_MS}
_CONSUMER = _CONNECTION | {
    "fetch.queue.backoff.ms": 5,
    "fetch.min.bytes": 100_000,
    "fetch.wait.max.ms": 20,
    "fetch.message.max.bytes": 4_000_000,
    "queued.max.messages.kbytes": 32_768,
}
_PRODUCER = _CONNECTION | {
    # By default librdkafka forgets every broker when the last connection breaks. What was under way to a transaction
    # coordinator that it has forgotten is never answered: a producer then hangs after a broker's restart, for minutes.
    # A consumer of ours waits for no coordinator, and finds brokers again by the default where it forgot them all.
    "metadata.recovery.strategy": "none",
    "linger.ms": 5,
    "queue.buffering.max.messages": 50_000,
    "batch.size": 1_000_000,
    "batch.num.messages": 10_000,
    "message.timeout.ms": 300_000,
    "partitioner": "murmur2_random",
}

SOCKET_TIMEOUT_MS = 60_000
LONGEST_TIMEOUT_MS = NO_TIMEOUT_MS - 100
"""The longest transaction that librdkafka can work with, 24.8 days.

It derives the time-out of every request from that of the transaction and computes it in 32 bits: with the greatest
number a request counts as timed out as soon as librdkafka looks, once a second, and is sent again. A time-out of their
own for requests it then refuses, by a sum that overflows too. Seen with 2.16.0.
"""


def checked_consumer_properties(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties of a source; raise ConfigurationError for one that would break a promise."""
    return _checked("KafkaSource", properties, _REFUSED_BY_CONSUMER)


def checked_query_properties(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties of a source of Spark's; raise ConfigurationError for one that would break a promise."""
    return _checked("the source twopc-kafka", properties, _REFUSED_BY_QUERY)


def checked_producer_properties(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties of a sink; raise ConfigurationError for one that would break a promise."""
    return _checked("KafkaSink", properties, _REFUSED_BY_PRODUCER)


def consumer_config(bootstrap_servers: str, group_id: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return librdkafka's settings for the reader of a subtask."""
    return {
        **_CONSUMER,
        **properties,
        "bootstrap.servers": bootstrap_servers,
        "group.id": group_id,
        "isolation.level": "read_committed",
        "auto.offset.reset": "error",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,
        "logger": CLIENT_LOG,
    }


def producer_config(bootstrap_servers: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return librdkafka's settings for a producer that loses and repeats nothing while it lives."""
    return {
        **_PRODUCER,
        **properties,
        "bootstrap.servers": bootstrap_servers,
        "enable.idempotence": True,
        "acks": "all",
        "delivery.report.only.error": True,
        "logger": CLIENT_LOG,
    }


def transactional_config(config: Mapping[str, Any], transactional_id: str, timeout_ms: int) -> dict[str, Any]:
    """Return the same settings for a transactional producer; librdkafka wants nothing to outlive its transaction."""
    timeout_ms = min(timeout_ms, LONGEST_TIMEOUT_MS)
    return {
        "socket.timeout.ms": max(900, min(SOCKET_TIMEOUT_MS, timeout_ms - 100)),
        **config,
        "transactional.id": transactional_id,
        "transaction.timeout.ms": timeout_ms,
        "message.timeout.ms": min(int(config["message.timeout.ms"]), timeout_ms),
    }


def _checked(owner: str, properties: Mapping[str, Any], refused: Mapping[str, str]) -> dict[str, Any]:
    for name in properties:
        if name in refused:
            raise ConfigurationError(f"{owner} can't take the property {name!r}: {refused[name]}")
    check_access(properties)
    return rooted(properties)
