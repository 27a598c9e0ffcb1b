"""What a transaction coordinator says of a transactional id. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

END_TXN_VERSION = 3
"""The version speaks for the protocol that the producer used: 5 would fence a live librdkafka producer."""


class BrokerState(Enum):
    """The states of a transactional id, as DescribeTransactions names them."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"
    DEAD = "Dead"


@dataclass(frozen=True, slots=True)
class Described:
    """The transaction coordinator's description of the transactional id now. `start_ms` is -1 where it knows none."""

    state: BrokerState
    producer_id: int
    producer_epoch: int
    start_ms: int
