"""The contract of a source: where the records of a job come from.

Three roles, each opened where it is needed:

- `Source`, the description in the job: data, copied to the driver and to every subtask, with nothing open;
- `SourcePlanner`, on the driver: divides the input into splits, and says where each begins;
- `SourceReader`, on a subtask: reads its splits, and says how far it is.

What a position looks like is the source's own affair: a JSON value, stored with every checkpoint and given back.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Self

from twopc.context import JobContext, SubtaskContext
from twopc.protocol.facts import SplitPosition
from twopc.protocol.ids import CheckpointId
from twopc.protocol.planned_starts import NOTHING_WITNESSED, Witnessed
from twopc.record import Batch, Row


@dataclass(frozen=True, slots=True)
class Split:
    """One piece of the input, read by one subtask from `start` on, where nothing is symbolic any more.

    `id` is its name, of its own in the source, and the same in every run; `partition` is the number of the partition
    group that it belongs to. `start` and `stop` are positions: JSON values of the source's own. `stop` is the end of a
    bounded read, None to read for ever.
    """

    id: str
    partition: int
    start: Any
    stop: Any
    source: str = ""
    """The operator id of its source, which the job gives it."""

    @property
    def begin(self) -> SplitPosition:
        """Where reading begins."""
        return SplitPosition(self.id, self.partition, self.start, self.source)


class SourceReader(ABC):
    """One subtask's reader of its splits. Used by one thread."""

    @abstractmethod
    def poll(self, timeout: float, most: int) -> Batch | None:
        """Return up to `most` records, decoded, in each partition's order; None after `timeout` seconds without any.

        A record that can't be decoded is one of the batch's `errors`, and the policy of the source (`on_error`) says
        what becomes of it. A reader that makes none may raise UserCodeError, which names it and ends the job.
        """

    @abstractmethod
    def positions(self, waiting: Iterable[Row] = ()) -> tuple[SplitPosition, ...]:
        """The position of every split, after everything that `poll` returned so far.

        But `waiting`, rows of it in any order, were not processed yet: of a split with such rows it is the position of
        the first of them.
        """

    def check_input(self, checkpoint_id: CheckpointId) -> None:
        """Raise unless all that `poll` returned so far came from the input that the splits name.

        Called for every checkpoint, after its positions were taken and before it is acknowledged: a ConfigurationError
        ends the job; CheckpointDeclined, if it can't be told now, this checkpoint.
        """

    def bound(self) -> bool:
        """Stop at the end that the input has now, as a bounded read does; where a split has a stop already, there.

        May be called again, and changes nothing then. Returns False where the input has no end: then the subtask reads
        nothing more.
        """
        return False

    @abstractmethod
    def finished(self) -> bool:
        """Whether every split was read to its stop. A reader without splits is finished."""

    def lag(self) -> int | None:
        """How many records are left to read, as far as known. For monitoring only."""
        return None

    def commit_positions(self, checkpoint_id: CheckpointId, positions: Sequence[SplitPosition]) -> None:
        """Tell the world how far a completed checkpoint went; a courtesy, so a failure is logged, not raised."""

    def close(self) -> None:
        """Let go of everything."""


@dataclass(frozen=True, slots=True)
class FollowerStanding:
    """How far a follower is, by what it was told.

    `ahead` are positions, at which reading would begin with no checkpoint, that are behind the first record there is.
    """

    witnessed: Witnessed = NOTHING_WITNESSED
    ahead: tuple[SplitPosition, ...] = ()


class Follower(ABC):
    """Who is told of the positions of completed checkpoints, outside them: for Kafka a consumer group.

    A reader tells it (`commit_positions`), or a sink does together with its output, where both are of one cluster.
    """

    name: str

    @abstractmethod
    def cluster(self) -> str:
        """Which cluster keeps it, by its id: see `SharedTransaction.cluster`."""

    @abstractmethod
    def standing(self) -> FollowerStanding:
        """How far it is; asked before and after what was left open has been aborted."""


class SourcePlanner(ABC):
    """Plans a source on the driver, for one attempt; raises Unavailable where the input can't be asked about."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def plan(self, restored: Mapping[str, SplitPosition], bounded: bool) -> list[Split]:
        """List the splits: each starts from its position in `restored`, or else where the source says.

        With `bounded`, each split stops at the end that it has now. Raises ConfigurationError for input that is
        missing or another one now, and for positions that can't be read from any more.
        """

    def unreadable(self, positions: Iterable[SplitPosition]) -> dict[SplitPosition, str]:
        """Return those of the positions that can't be read from any more, each with what is gone, in words.

        Asked before lost output is written again.
        """
        return {}

    def follower(self) -> Follower | None:
        """Return who follows the positions outside the checkpoints, if somebody does."""
        return None

    def standing(self) -> tuple[str, FollowerStanding]:
        """Say who follows the positions, by name, and how far that is; nobody is called nothing."""
        follower = self.follower()
        return ("", FollowerStanding()) if follower is None else (follower.name, follower.standing())

    def close(self) -> None:
        """Let go of everything."""


class Source(ABC):
    """The description of an input in a job. It is copied to every subtask, and opens nothing by itself.

    `inputs` names what is read, such as topics, where that is known before it is planned.
    """

    inputs: tuple[str, ...] = ()

    @abstractmethod
    def open_planner(self, context: JobContext) -> SourcePlanner:
        """On the driver: prepare to plan, for this attempt."""

    @abstractmethod
    def open_reader(self, context: SubtaskContext, splits: Sequence[Split]) -> SourceReader:
        """On a subtask: start reading these splits at their starts."""

    def input_of(self, split: str) -> str:
        """Which input a split is a piece of: what `inputs` names, and a person gives up."""
        return split

    def reads(self, name: str) -> bool:
        """Whether this is the name of an input that is read, as far as that is known before it is planned."""
        return name in self.inputs

    def precedes(self, position: SplitPosition, later: SplitPosition) -> bool:
        """Whether there may be input between two positions of one split, the first before the second."""
        return bool(position.position != later.position)

    def skips(self, split: Split) -> bool:
        """Whether the split's start leaves out input that may have come before."""
        return False

    def with_access(self, properties: Mapping[str, Any]) -> Source:
        """Return this source with properties that the whole job has for getting at its input, over which its own go."""
        return self

    def watched(self, context: JobContext) -> AbstractContextManager[object]:
        """On the driver, while a run lasts: say once when the input can't be reached, and once when it can again."""
        return nullcontext()

    def describe(self) -> Mapping[str, Any]:
        """What the job's description and logs show of this source. Holds nothing secret."""
        return {"type": type(self).__name__}
