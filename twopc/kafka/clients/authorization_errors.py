"""Authorization errors in words: the resource, the operation that is missing, and who needs it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twopc.errors import ConfigurationError
from twopc.kafka.clients.access import principal

TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID = 29, 30, 31, 53
"""Kafka's error codes: ..._AUTHORIZATION_FAILED."""

_NEEDED = {
    TOPIC: "Read on the topic if it is the input, Write if it is the output",
    GROUP: "Read on the consumer group (group_id of the source, by default the job's name)",
    CLUSTER: "DescribeConfigs on the cluster, and IdempotentWrite on it where brokers are older than 2.8",
    TRANSACTIONAL_ID: "Write and Describe on transactional ids that begin with transactional_id_prefix of the sink, "
    "by default the job's name (a prefixed ACL)",
}

NOT_ALLOWED = frozenset(_NEEDED)


def denied(code: int, problem: str, properties: Mapping[str, Any] | None = None) -> ConfigurationError:
    """Return the error for what brokers answered with such a code; `properties` say who asked."""
    return needs(problem, _NEEDED.get(code, "an ACL"), properties)


def needs(problem: str, needed: str, properties: Mapping[str, Any] | None = None) -> ConfigurationError:
    """Return the error that asks an administrator for an ACL."""
    who = "the user that the properties of source and sink name" if properties is None else principal(properties)
    return ConfigurationError(f"{problem}. Needed is {needed}, for {who}: kafka-acls.sh grants it")
