"""The decision about a micro-batch, as a value that is stored once and never changed. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from twopc.protocol.facts import Committable
from twopc.protocol.ids import AttemptId

FIRST_REVISION = 1


@dataclass(frozen=True, slots=True)
class QueryOwner:
    """The query whose decisions a place holds: Spark's id of it, which stands in its checkpointLocation."""

    KIND: ClassVar[str] = "query-owner"

    query: str


@dataclass(frozen=True, slots=True)
class Decision:
    """The commit point of a batch: once it is stored, these transactions, and no others, are the batch's output.

    `revision` counts the decisions about one batch; a later one is made only when everything that the one before names
    is certainly aborted. `creator` is a token of who stored it, so that no two drivers store the same bytes.
    """

    KIND: ClassVar[str] = "batch-decision"

    batch: int
    revision: int
    run: AttemptId
    transactions: tuple[Committable, ...]
    creator: str = ""

    @property
    def names(self) -> frozenset[str]:
        return frozenset(transaction.name for transaction in self.transactions)


@dataclass(frozen=True, slots=True)
class StoredDecisions:
    """The stored decisions when a batch begins: the newest batch that is decided, and this one's newest decision."""

    newest_batch: int | None = None
    decision: Decision | None = None


@dataclass(frozen=True, slots=True)
class WrittenBatch:
    """The transactions of a batch's tasks, of those that Spark counts. `size` is keys and values, in bytes.

    `tries` is how often a task was begun, of that which was begun most often.
    """

    transactions: tuple[Committable, ...]
    records: int = 0
    size: int = 0
    tries: int = 1
