"""The observable state of a broker, in words that are the same for the simulated and the real one."""

from __future__ import annotations

from dataclasses import dataclass

from tests.simulation.transaction_coordinator import Producer
from tests.simulation.transaction_tables import Code

#: Asked again until the broker is no longer busy with what came before.
BUSY = (
    Code.CONCURRENT_TRANSACTIONS,
    Code.COORDINATOR_LOAD_IN_PROGRESS,
    Code.COORDINATOR_NOT_AVAILABLE,
    Code.NOT_COORDINATOR,
    Code.NOT_ENOUGH_REPLICAS,
)


@dataclass(frozen=True, slots=True)
class Description:
    """A transactional id as DescribeTransactions shows it. `start_ms` is by the broker's own clock."""

    state: str
    producer: Producer
    timeout_ms: int
    partitions: tuple[int, ...]
    start_ms: int


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request; the producer or the offset that came with it, if any."""

    code: Code
    producer: Producer | None = None
    offset: tuple[int, str] | None = None


@dataclass(frozen=True, slots=True)
class VisiblePartition:
    """A partition as its readers see it; offsets count from the start of the sequence."""

    high_watermark: int
    last_stable_offset: int
    committed: tuple[str, ...]
    uncommitted: tuple[str, ...]
