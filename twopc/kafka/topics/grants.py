"""The grants of ACLs, asked for before a job starts: one question for its topics and one for its group."""

from __future__ import annotations

from collections.abc import Sequence

from twopc.kafka.clients.authorization_errors import needs
from twopc.kafka.clients.control_client import ControlClient

READ, WRITE = "Read", "Write"


def require_topic_grants(client: ControlClient, topics: Sequence[str], operation: str) -> None:
    """Raise ConfigurationError, naming them, for topics on which an operation isn't allowed."""
    allowed = client.topic_operations(topics)
    if lacking := [topic for topic in topics if operation not in allowed.get(topic, {operation})]:
        named = ", ".join(map(repr, lacking))
        raise needs(f"topic {named} can't be used", f"{operation} on topic {named}", client.properties)


def require_group_grant(client: ControlClient, group: str) -> None:
    """Raise ConfigurationError if positions can't be committed to a group."""
    if READ not in client.group_operations(group):
        raise needs(f"consumer group {group!r} can't be used", f"{READ} on consumer group {group!r}", client.properties)
