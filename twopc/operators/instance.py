"""The interface of an operator at run time: what a step opens on each subtask."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from twopc.column import Over
from twopc.operators.result import Result, Work
from twopc.operators.time_bound import Latest
from twopc.operators.write_back_cache import AS_STORED, HeldForm, KeyedStateStore, WriteBackCache
from twopc.record import Batch
from twopc.state.layout import StateName

if TYPE_CHECKING:
    from twopc.operators.broadcast import BroadcastTable
    from twopc.operators.source_times import SourceTimes


class Instance(ABC):
    """One operator on one subtask. One thread calls it, but for `index`.

    Batches come to it by port, in the order of their source; a snapshot is taken between `write_back` and the next of
    them. What most operators have no use for is done here already.
    """

    concurrency = 1
    """How many records of a batch may be in a user function's hands at a time."""

    @property
    @abstractmethod
    def ports(self) -> Sequence[Work]:
        """What works on the batches of each input port of the step that takes records, in the order of those."""

    def together(self, numbers: Sequence[int]) -> Work:
        """Return what works on one batch whose records came to the ports of these numbers, where the step says so.

        It is called again with what is behind a record that failed: then the last of the numbers are of that.
        """
        raise AssertionError("each port is worked on by itself")

    def side_output(self, name: str) -> Batch:
        """Return what the last batch, or the last passing of time, has put out there."""
        raise AssertionError(f"there is no output {name!r}")

    def rows(self, numbers: Collection[int]) -> int | None:
        """Return how many rows a table has here, under these partition numbers; None for no table, or not known."""
        return None

    def write_back(self) -> None:
        """Bring the store up to every batch so far."""

    def close(self) -> None:
        """End what user functions have in flight, and let them close what they have opened; nothing follows."""

    def index(self, otherwise: int) -> int:
        """Return the index of the record that the batch in hand waits for; `otherwise` is that of the loop over it.

        Another thread may ask.
        """
        return otherwise


class OnePortInstance(Instance):
    """One with a single input port."""

    @property
    def ports(self) -> Sequence[Work]:
        return (self.process,)

    @abstractmethod
    def process(self, batch: Batch, over: Over) -> Result:
        """Work on a batch, up to where `over` stops."""


class TimedInstance(Instance):
    """One that has a stream time by partition number, at which something may be due."""

    late: int | None = None
    """How many records came too late; None where none can."""

    idle_ms: int | None = None
    """For how long a partition number may have no records before its time follows that of others; None for ever."""

    @abstractmethod
    def pass_time(self, number: int, to: int) -> Result:
        """Let the stream time of a partition number reach this, and return what is due by then."""

    @abstractmethod
    def drain(self, number: int) -> Result:
        """Let the stream time of a partition number pass until nothing waits for it."""

    def open_windows(self, number: int) -> int | None:
        """Return how many windows are open under a partition number; None where none can be, or it is not known."""
        return None

    @abstractmethod
    def stream_time(self, number: int) -> int | None:
        """Return the stream time of a partition number, None before any record with a timestamp there."""


@dataclass(frozen=True, slots=True)
class OperatorContext:
    """What an operator finds on its subtask as it is opened.

    `outputs` are those of its side outputs from which records go on, `tables` the broadcast tables of the job, and
    `instances` the operators before it. Records may move stream time to the time that `latest` says, and no further.
    `source_times` are of sources whose records meet, there, those of a `key_by`.
    """

    operator_id: str
    store: KeyedStateStore
    sharers: int
    """The caches of the subtask, which share its memory."""
    outputs: Collection[str]
    latest: Latest
    source_times: SourceTimes
    tables: Mapping[str, BroadcastTable]
    instances: Mapping[str, Instance]
    by_marks: bool = False
    """Whether marks alone move stream time here: some of what comes does so through topics of the job's own."""

    def cache(self, state: str, form: HeldForm = AS_STORED) -> WriteBackCache:
        """Return the cache of one of its states."""
        return WriteBackCache(StateName(self.operator_id, state), self.store, self.sharers, form)
