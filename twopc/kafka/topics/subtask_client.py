"""The one client through which a subtask's sources and sinks ask a cluster, and what they want to stay the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from twopc.context import SubtaskContext
from twopc.kafka.clients.access import access_of
from twopc.kafka.clients.leaders import LeaderClient
from twopc.kafka.topics.topic_identity import TopicIdentity


class SubtaskClient(LeaderClient):
    """A LeaderClient that the sources and sinks of a subtask share. Any thread may call."""

    def __init__(self, bootstrap_servers: str, properties: Mapping[str, Any]) -> None:
        super().__init__(bootstrap_servers, properties)
        self.identity = TopicIdentity(self)
        self._users = 1

    @classmethod
    def of(cls, context: SubtaskContext, bootstrap_servers: str, properties: Mapping[str, Any]) -> Self:
        """Return the one that this subtask's sources and sinks share; the last of its users to close it closes it."""
        key = (cls, bootstrap_servers, repr(sorted(access_of(properties).items())))
        client: Self | None = context.shared.get(key)
        if client is None or not client._users:
            client = context.shared[key] = cls(bootstrap_servers, properties)
        else:
            client._users += 1
        return client

    def close(self) -> None:
        """Count one user less; the last one closes the connections."""
        self._users -= 1
        if self._users <= 0:
            super().close()
