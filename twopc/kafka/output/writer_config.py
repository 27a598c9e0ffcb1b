"""The configuration of a writer, or of a committer: its subtask and its sink, as one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from twopc.config import RunSettings
from twopc.kafka.clients.access import access_of
from twopc.kafka.clients.client_config import producer_config, transactional_config
from twopc.kafka.clients.client_log import CLIENT_LOG
from twopc.protocol.ids import AttemptId, SubtaskIndex

DRIVER = SubtaskIndex(-1)


@dataclass(frozen=True, slots=True)
class WriterConfig:
    """`subtask` is DRIVER where the driver asks."""

    prefix: str
    subtask: SubtaskIndex
    attempt: AttemptId
    settings: RunSettings
    bootstrap_servers: str
    properties: Mapping[str, Any] = field(repr=False)

    def plain(self) -> dict[str, Any]:
        """Return the settings of an idempotent producer."""
        return producer_config(self.bootstrap_servers, self.properties)

    def transactional(self, transactional_id: str, timeout_ms: int) -> dict[str, Any]:
        """Return the settings of a transactional producer; the time-out is its transactions'."""
        return transactional_config(self.plain(), transactional_id, timeout_ms)

    def group_handle(self, group: str) -> dict[str, Any]:
        """Return the settings of a consumer that only names its group."""
        own = {"bootstrap.servers": self.bootstrap_servers, "group.id": group, "logger": CLIENT_LOG}
        return {**access_of(self.properties), **own}
