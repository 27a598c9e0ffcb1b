"""The broker on which sequences are played, and its version of the transaction protocol."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from kafka.protocol.admin import UpdateFeaturesRequest
from kafka.protocol.metadata import ApiVersionsRequest

from tests.simulation.differential.connection import Connection
from tests.simulation.differential.real_side import RealSide
from tests.simulation.differential.steps import PARTITIONS
from tests.simulation.transaction_coordinator import Producer

FEATURE = "transaction.version"
PROTOCOLS = (1, 2)
LANES = 16
_UPGRADE, _SAFE_DOWNGRADE = 1, 2
_PATIENCE_S = 60.0

T = TypeVar("T")

#: The prefix of transactional ids, and who holds the id of each name.
Held = tuple[str, dict[str, Producer]]


@dataclass(frozen=True, slots=True)
class Grounds:
    """A topic with a pair of partitions for each sequence that is played at the same time."""

    bootstrap_servers: str
    topic: str
    numbers: Iterator[int]

    def connect(self) -> Connection:
        return Connection(self.bootstrap_servers)

    def side(self, connection: Connection, *, lane: int = 0, prefix: str = "") -> RealSide:
        """A place for one sequence, with ids that nobody has used unless a prefix is given."""
        partitions = (PARTITIONS * lane, PARTITIONS * lane + 1)
        return RealSide(connection, prefix or f"{self.topic}-{next(self.numbers)}", self.topic, partitions)


def set_protocol(connection: Connection, version: int) -> None:
    """Have the broker speak this version, and return when it does."""
    current = _protocol(connection)
    if current == version:
        return
    kind = _UPGRADE if version > current else _SAFE_DOWNGRADE
    update = UpdateFeaturesRequest.FeatureUpdateKey(feature=FEATURE, max_version_level=version, upgrade_type=kind)
    connection.ask(UpdateFeaturesRequest(timeout_ms=10_000, feature_updates=[update], validate_only=False), 1)
    deadline = time.monotonic() + _PATIENCE_S
    while _protocol(connection) != version:
        assert time.monotonic() < deadline, f"{FEATURE} does not become {version}"
        time.sleep(0.01)


def in_lanes(jobs: Sequence[Callable[[int], T]]) -> list[T]:
    """Run the jobs, each with the number of its lane; those of one lane one after the other."""

    def run(lane: int) -> list[T]:
        return [job(lane) for job in jobs[lane::LANES]]

    with ThreadPoolExecutor(LANES) as pool:
        return [result for row in pool.map(run, range(LANES)) for result in row]


def _protocol(connection: Connection) -> int:
    answer = connection.ask(ApiVersionsRequest(client_software_name="simbroker", client_software_version="1"), 3)
    return next((int(row.max_version_level) for row in answer.finalized_features if row.name == FEATURE), 0)
