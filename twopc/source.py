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
from typing import TYPE_CHECKING, Any, Self

from twopc.context import JobContext, SubtaskContext
from twopc.errors import ConfigurationError
from twopc.input_now import HiddenInput, Places
from twopc.key_spread import KeySample
from twopc.protocol.facts import CheckpointMetadata, SplitPosition
from twopc.protocol.ids import CheckpointId
from twopc.protocol.planned_starts import NOTHING_WITNESSED, Witnessed
from twopc.record import Batch, Row

if TYPE_CHECKING:
    from twopc.repartition import Repartition, RepartitionConnectors


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
        """The positions at which reading begins."""
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

    def caught_up(self) -> frozenset[str] | None:
        """Return the ids of the splits of which nothing is left to read just now, as far as is known.

        None where only a `poll` tells: then one that returned nothing says it of all. Where records of several sources
        meet by key, the others wait for one that is not caught up.
        """
        return None

    def pause(self, splits: frozenset[str]) -> bool:
        """Read nothing more of exactly these splits until the next call; return False where none can be chosen.

        Where records of several sources meet by key, much is held of a split whose partner stands far back in its
        input: those that are not paused are read on, so that no order is lost for the sake of memory.
        """
        return False

    def lag(self) -> int | None:
        """The number of records that are left to read, as far as known. For monitoring only."""
        return None

    def split_lags(self) -> Mapping[str, int]:
        """The lag by the id of the split; splits of which it isn't known are left out."""
        return {}

    def bytes_read(self) -> int | None:
        """The bytes of the values that `poll` returned so far; None where nobody counts.

        For monitoring, and for how many records may wait for those of other sources.
        """
        return None

    def commit_positions(self, checkpoint_id: CheckpointId, positions: Sequence[SplitPosition]) -> None:
        """Tell the world how far a completed checkpoint went; a courtesy, so a failure is logged, not raised."""

    def close(self) -> None:
        """Let go of everything."""


@dataclass(frozen=True, slots=True)
class FollowerStanding:
    """The position of a follower, by what it was told.

    `ahead` are positions, at which reading would begin with no checkpoint, that are behind the first record there is.
    """

    witnessed: Witnessed = NOTHING_WITNESSED
    ahead: tuple[SplitPosition, ...] = ()


class Follower(ABC):
    """A follower of the positions of completed checkpoints, outside them: for Kafka a consumer group.

    A reader tells it (`commit_positions`), or a sink does together with its output, where both are of one cluster.
    """

    name: str

    @abstractmethod
    def cluster(self) -> str:
        """The cluster that keeps it, by its id: see `SharedTransaction.cluster`."""

    @abstractmethod
    def standing(self) -> FollowerStanding:
        """The standing, asked for before and after what was left open has been aborted."""


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

    def added(self, read: Sequence[Split]) -> list[Split]:
        """List the splits that there are now besides those that are read, each from its first record.

        Asked while the job reads, where the source's `watch_ms` says so. A ConfigurationError says why what is new
        can't be read; the job goes on without.
        """
        return []

    def left_out(self, read: Sequence[Split]) -> list[Split]:
        """List the splits that there are now and that nobody reads before the job starts again, as it is declared."""
        return []

    def hidden(self, read: Sequence[Split], before: Places | None) -> list[HiddenInput]:
        """Return what is written in these splits and can't be read yet.

        The cause is found out where that was so `before`, too; everywhere, where it is None.
        """
        return []

    def key_samples(self, read: Sequence[Split]) -> list[KeySample]:
        """Return keys of the first records of these splits; nothing of inputs in which no key can be apart."""
        return []

    def on_course(self, restored: CheckpointMetadata) -> list[SplitPosition]:
        """Return the positions of a checkpoint in these splits, from which what was written since then is not read.

        Asked only of a source that reads what the job itself writes, where the job goes back to an older checkpoint,
        when nobody of the job writes any more. Raises ConfigurationError where that can't be told.
        """
        raise NotImplementedError("a source of what a job writes itself tells what was written since a checkpoint")

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

    `inputs` names what is read, such as topics, where that is known before it is planned. `watch_ms` is how often the
    driver looks at the input while the job reads; None: at each start only. New splits that it finds then are read by
    the next attempt, where the source `reads_new`, and are told elsewhere. One that `has_marks` reads what the job has
    written, with marks of time among the records (`twopc.time_marks`): its readers tell them apart.
    """

    inputs: tuple[str, ...] = ()
    watch_ms: int | None = None
    reads_new: bool = True
    has_marks: bool = False

    @abstractmethod
    def open_planner(self, context: JobContext) -> SourcePlanner:
        """On the driver: prepare to plan, for this attempt."""

    @abstractmethod
    def open_reader(self, context: SubtaskContext, splits: Sequence[Split]) -> SourceReader:
        """On a subtask: start reading these splits at their starts."""

    def input_of(self, split: str) -> str:
        """The input that a split is a piece of: one that `inputs` names, and a person gives up."""
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

    def from_beginning(self) -> Source:
        """Return this source as a broadcast table reads it: without positions, from its first record on.

        Each subtask plans it with `bounded`, reads to the stops, and opens a reader that starts at these to follow it.
        Raises ConfigurationError where it can't be read so.
        """
        raise ConfigurationError(
            f"a broadcast table is read from its first record by every subtask, and {type(self).__name__} does not say "
            "how (from_beginning): read it with KafkaSource"
        )

    def with_access(self, properties: Mapping[str, Any]) -> Source:
        """Return this source with properties that the whole job has for getting at its input, over which its own go."""
        return self

    def forget(self, context: JobContext, kept: Sequence[SplitPosition]) -> None:
        """On the driver, now and then: nothing before all of these positions will be read again.

        Asked only of a source that reads what the job itself writes. `kept` are those of all kept checkpoints.
        """

    def repartitioned(self, through: Repartition) -> RepartitionConnectors | None:
        """Return the two ends of a place where this source's records are written and read by a new key.

        None where there is none: then `key_by` is refused.
        """
        return None

    def watched(self, context: JobContext) -> AbstractContextManager[object]:
        """On the driver, while a run lasts: say once when the input can't be reached, and once when it can again."""
        return nullcontext()

    def describe(self) -> Mapping[str, Any]:
        """The description of this source in the job's own and in logs. Holds nothing secret."""
        return {"type": type(self).__name__}
