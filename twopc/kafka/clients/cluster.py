"""The brokers of one cluster and the access to them, for tools, which have no job's settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from twopc.kafka.clients.topic_client import TopicClient


@dataclass(frozen=True, slots=True)
class Cluster:
    """The address of the brokers; `properties` are librdkafka's, for a consumer or a producer."""

    servers: str
    properties: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def client(self) -> TopicClient:
        return TopicClient(self.servers, self.properties)
