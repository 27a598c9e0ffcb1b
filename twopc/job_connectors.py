"""A job's sources as one source, its sinks as one sink: the driver plans, asks and settles each by its operator id.

A subtask opens each source and each sink by itself (`twopc.runtime`): these two stand for all of them on the driver.

Invariants:

- A split and a position name their source, a committable its transaction group. What the latest checkpoint has of a
  group that the job no longer has is settled by no other: the start is refused, unless its commit was confirmed.
- No two sources read a split of one id, though it were of another cluster: what is stored knows splits by their ids.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

from twopc.context import JobContext, SubtaskContext
from twopc.errors import ConfigurationError, Fenced, GlobalCommitFailed
from twopc.input_now import HiddenInput, Places
from twopc.key_spread import KeySample
from twopc.listing import listed
from twopc.protocol.attempts import GlobalCommit, Traces
from twopc.protocol.facts import CheckpointMetadata, Committable, KnownOutput, SplitPosition
from twopc.protocol.planned_starts import NOTHING_WITNESSED
from twopc.sink import Committer, Outcome, Settled, Sink
from twopc.source import Follower, FollowerStanding, Source, SourcePlanner, SourceReader, Split
from twopc.transaction_group import TransactionGroup, transaction_groups


class JobSource(Source):
    """All sources of a job; `stages` has the stage of each that is not of the first, 0.

    `broadcasts` are read by every subtask for itself: here it is only seen to that they can be.
    """

    def __init__(
        self,
        sources: Mapping[str, Source],
        stages: Mapping[str, int] | None = None,
        broadcasts: Mapping[str, Source] | None = None,
    ) -> None:
        self._sources = dict(sources)
        self._broadcasts = dict(broadcasts or {})
        self._later = frozenset(source for source, stage in (stages or {}).items() if stage)
        known = all(source.inputs for source in self._sources.values())
        self.inputs = tuple(name for source in self._sources.values() for name in source.inputs) if known else ()
        intervals = [each.watch_ms for each in self._sources.values() if each.watch_ms is not None]
        self.watch_ms = min(intervals, default=None)

    def open_planner(self, context: JobContext) -> JobPlanner:
        with ExitStack() as closing:
            planners = {
                operator: closing.enter_context(source.open_planner(context))
                for operator, source in self._sources.items()
            }
            read_whole = [
                closing.enter_context(source.from_beginning().open_planner(context))
                for source in self._broadcasts.values()
            ]
            watched = {key: source.reads_new for key, source in self._sources.items() if source.watch_ms is not None}
            return JobPlanner(context.job, planners, watched, self._owner, closing.pop_all(), self._later, read_whole)

    def open_reader(self, context: SubtaskContext, splits: Sequence[Split]) -> SourceReader:
        raise AssertionError("a subtask opens each source by itself")

    def input_of(self, split: str) -> str:
        named = (source.input_of(split) for source in self._sources.values())
        return next((name for name in named if self.reads(name) or name != split), split)

    def reads(self, name: str) -> bool:
        return any(source.reads(name) for source in self._sources.values())

    def precedes(self, position: SplitPosition, later: SplitPosition) -> bool:
        return self._sources[self._owner(position)].precedes(position, later)

    def skips(self, split: Split) -> bool:
        return self._sources[self._owner(split.begin)].skips(split)

    def forget(self, context: JobContext, kept: Sequence[SplitPosition]) -> None:
        for operator in sorted(self._later):
            if own := [held for held in kept if self._owner(held) == operator]:
                self._sources[operator].forget(context, own)

    @contextmanager
    def watched(self, context: JobContext) -> Iterator[None]:
        with ExitStack() as closing:
            for source in (*self._sources.values(), *self._broadcasts.values()):
                closing.enter_context(source.watched(context))
            yield

    def describe(self) -> Mapping[str, Any]:
        starts = [str(source.describe().get("start", "")) for source in self._sources.values()]
        return {"type": "sources", "start": ", ".join(starts)}

    def _owner(self, held: SplitPosition) -> str:
        """Return the source that knows what a position means. A source that was renamed still reads its splits."""
        if held.source in self._sources:
            return held.source
        knowing = (operator for operator, source in self._sources.items() if source.reads(source.input_of(held.split)))
        return next(knowing, next(iter(self._sources)))


class JobPlanner(SourcePlanner):
    """The planners of all sources, by their operator ids.

    `watched` are those that are looked at while the job reads, and whether what is new there is read. Those of `later`
    stages are not bounded by the plan: what they have to read is not there yet. What those of `read_whole` plan is in
    no plan: whoever reads it plans it again.
    """

    def __init__(
        self,
        job: str,
        planners: Mapping[str, SourcePlanner],
        watched: Mapping[str, bool],
        owner: Callable[[SplitPosition], str],
        closing: ExitStack,
        later: frozenset[str] = frozenset(),
        read_whole: Sequence[SourcePlanner] = (),
    ) -> None:
        self._job = job
        self._planners = dict(planners)
        self._later = later
        self._read_whole = tuple(read_whole)
        self._watched = dict(watched)
        self._owner = owner
        self._closing = closing

    def plan(self, restored: Mapping[str, SplitPosition], bounded: bool) -> list[Split]:
        splits = [
            replace(split, source=operator)
            for operator, planner in self._planners.items()
            for split in planner.plan(restored, bounded and operator not in self._later)
        ]
        refuse_read_twice(self._job, splits)
        for planner in self._read_whole:
            planner.plan({}, bounded)
        return splits

    def added(self, read: Sequence[Split]) -> list[Split]:
        added = self._new(read, is_read=True)
        # A topic that had gone and is back is found as new, and was kept as it was read before.
        again = {(split.source, split.id) for split in added}
        refuse_read_twice(self._job, [*(split for split in read if (split.source, split.id) not in again), *added])
        return added

    def left_out(self, read: Sequence[Split]) -> list[Split]:
        return self._new(read, is_read=False)

    def hidden(self, read: Sequence[Split], before: Places | None) -> list[HiddenInput]:
        first = [operator for operator in self._watched if operator not in self._later]
        return [each for operator in first for each in self._planners[operator].hidden(_of(operator, read), before)]

    def key_samples(self, read: Sequence[Split]) -> list[KeySample]:
        first = [operator for operator in self._planners if operator not in self._later]
        return [
            replace(sample, source=operator)
            for operator in first
            if (own := _of(operator, read))
            for sample in self._planners[operator].key_samples(own)
        ]

    def _new(self, read: Sequence[Split], *, is_read: bool) -> list[Split]:
        return [
            replace(split, source=operator)
            for operator, reads_new in self._watched.items()
            if reads_new is is_read
            for split in self._planners[operator].added(_of(operator, read))
        ]

    def on_course(self, restored: CheckpointMetadata) -> list[SplitPosition]:
        return [held for operator in sorted(self._later) for held in self._planners[operator].on_course(restored)]

    def unreadable(self, positions: Iterable[SplitPosition]) -> dict[SplitPosition, str]:
        gone: dict[SplitPosition, str] = {}
        every = list(positions)
        for operator, planner in self._planners.items():
            if own := [held for held in every if self._owner(held) == operator]:
                gone.update(planner.unreadable(own))
        return gone

    def follower(self) -> Follower | None:
        """Return the one that every source has, if there is one: only that can be told of all positions at once."""
        every = self._followers()
        if len(every) < len(self._planners) or len({each.name for each in every}) > 1:
            return None
        return every[0] if len(every) == 1 else JobFollower(every)

    def standing(self) -> tuple[str, FollowerStanding]:
        """Say how far the followers of all sources are, though they are not one."""
        every = self._followers()
        return ", ".join(dict.fromkeys(follower.name for follower in every)), _combined_standing(every)

    def close(self) -> None:
        self._closing.close()

    def _followers(self) -> list[Follower]:
        return [each for planner in self._planners.values() if (each := planner.follower()) is not None]


def _of(operator: str, splits: Sequence[Split]) -> list[Split]:
    return [split for split in splits if split.source == operator]


class JobFollower(Follower):
    """The follower of one name that several sources have, each for its own input."""

    def __init__(self, every: Sequence[Follower]) -> None:
        self._every = list(every)
        self.name = every[0].name

    def cluster(self) -> str:
        """The cluster that keeps it; of several places the text is no id of any, so nothing is taken to be there."""
        return " and ".join(sorted({follower.cluster() for follower in self._every}))

    def standing(self) -> FollowerStanding:
        return _combined_standing(self._every)


class JobSink:
    """All sinks of a job, by transaction group."""

    def __init__(self, sinks: Mapping[str, Sink]) -> None:
        self._sinks = dict(sinks)

    def groups(self, context: JobContext) -> tuple[TransactionGroup, ...]:
        """Form the transaction groups."""
        return transaction_groups(self._sinks, context)

    def open_committer(self, context: JobContext) -> Committer:
        """Open the committers of all groups, as one."""
        with ExitStack() as closing:
            committers = {
                group.id: closing.enter_context(group.open_committer(self._sinks, context))
                for group in self.groups(context)
            }
            return JobCommitter(context.job, committers, closing.pop_all())

    def groups_of_run(self, context: JobContext) -> tuple[TransactionGroup, ...]:
        """Form the transaction groups for an attempt that is about to run: with which of them commit globally."""
        return tuple(
            replace(group, is_global=self._has_global_committer(group, context)) for group in self.groups(context)
        )

    def commit_globally(self, context: JobContext, due: GlobalCommit) -> None:
        """Let the global committer of each group commit what is its own; raise GlobalCommitFailed, Fenced."""
        groups = {group.id: group for group in self.groups(context)}
        for name, committables in due.by_group.items():
            # Under no other name, though it be the only sink: another's output in its table would stay there.
            group = groups.get(name)
            try:
                committer = None if group is None else group.open_global_committer(self._sinks, context)
                if committer is None:
                    raise ConfigurationError(
                        "the job has no such sink with a global committer any more: run it with that sink as it was, "
                        "under the name that it had, and stop it with a last checkpoint before you take the sink out"
                    )
                with committer:
                    committer.commit(due.checkpoint_id, committables)
            except Fenced:
                raise
            except Exception as error:
                raise GlobalCommitFailed(
                    f"job {context.job!r}: the global commit of checkpoint {due.checkpoint_id} by sink {name!r} "
                    f"failed, and nothing later is committed before it: {type(error).__name__}: {error}",
                    error,
                ) from error

    def _has_global_committer(self, group: TransactionGroup, context: JobContext) -> bool:
        """Whether the first sink of a group has one; raise ConfigurationError where another has: none would ask it."""
        first, *others = group.sinks
        for each in others:
            if self._opens_global_committer(each, context):
                raise ConfigurationError(
                    f"job {context.job!r}: sink {each!r} has a global committer, and writes into the transaction of "
                    f"sink {first!r}, where only that one's would be asked: give {each!r} a transaction of its own"
                )
        return self._opens_global_committer(first, context)

    def _opens_global_committer(self, sink: str, context: JobContext) -> bool:
        committer = self._sinks[sink].open_global_committer(context)
        if committer is None:
            return False
        committer.close()
        return True

    @contextmanager
    def watched(self, context: JobContext) -> Iterator[None]:
        """While a run lasts: say once when an output can't be reached, and once when it can again."""
        with ExitStack() as closing:
            for sink in self._sinks.values():
                closing.enter_context(sink.watched(context))
            yield


class JobCommitter(Committer):
    """The committers of all transaction groups, by their ids.

    The only one of a job settles what a job with one group wrote, whatever that was called: a sink may be renamed.
    """

    def __init__(self, job: str, committers: Mapping[str, Committer], closing: ExitStack) -> None:
        self._job = job
        self._committers = dict(committers)
        self._closing = closing
        self._renamed: dict[str, str] = {}

    def traces(self) -> Traces:
        every = [committer.traces() for committer in self._committers.values()]
        return Traces(
            claimed=max(each.claimed for each in every),
            written=max(each.written for each in every),
            open=max(each.open for each in every),
        )

    def claim(self) -> None:
        for committer in self._committers.values():
            committer.claim()

    def settle(self, committables: Sequence[Committable], confirmed: frozenset[str]) -> list[Settled]:
        if len(self._committers) == 1:
            # Of a job that had several groups, what is there may belong to one that was taken out.
            self._renamed = {item.group: only for item in committables if item.is_sole for only in self._committers}
        gone = [item for item in committables if self._group(item) not in self._committers]
        if unsettled := [item for item in gone if item.name not in confirmed]:
            raise ConfigurationError(
                f"the latest checkpoint of job {self._job!r} has output of {unsettled[0].group!r}, which may not be "
                f"committed yet ({unsettled[0].name}), and the job has no such sink any more: run it with that sink as "
                "it was, under the name that it had, and stop it with a last checkpoint before you take the sink out"
            )
        accepted = [Settled(item, Outcome.ALREADY_COMMITTED, "its commit was confirmed") for item in gone]
        return accepted + self._each(committables, lambda committer, own: committer.settle(own, confirmed))

    def give_up(self, committables: Sequence[Committable]) -> list[Settled]:
        return self._each(committables, lambda committer, own: committer.give_up(own))

    def commit_held(self, committables: Sequence[Committable]) -> list[Settled]:
        return self._each(committables, lambda committer, own: committer.commit_held(own))

    def abort_lingering(self) -> list[str]:
        return [name for committer in self._committers.values() for name in committer.abort_lingering()]

    def compare(self, known: Sequence[KnownOutput]) -> None:
        is_renamed = len(self._committers) == len({output.group for output in known}) == 1
        for group, committer in self._committers.items():
            if own := [output for output in known if is_renamed or output.group == group]:
                committer.compare(own)

    def close(self) -> None:
        self._closing.close()

    def _group(self, item: Committable) -> str:
        return self._renamed.get(item.group, item.group)

    def _each(
        self, committables: Sequence[Committable], act: Callable[[Committer, list[Committable]], list[Settled]]
    ) -> list[Settled]:
        """Let each committer act on what is its own; what is said of each stands in the given order."""
        settled: list[Settled] = []
        for group, committer in self._committers.items():
            if own := [item for item in committables if self._group(item) == group]:
                settled += act(committer, own)
        place = {item.name: number for number, item in enumerate(committables)}
        return sorted(settled, key=lambda settlement: place[settlement.committable.name])


def refuse_read_twice(job: str, splits: Iterable[Split]) -> None:
    """Raise ConfigurationError where two sources read one split."""
    every = list(splits)
    counts = Counter(split.id for split in every)
    if twice := [split for split in every if counts[split.id] > 1]:
        raise ConfigurationError(
            f"job {job!r}: {listed(dict.fromkeys(split.source for split in twice))} read the same input, "
            f"{twice[0].id}: read it with one source, and let the stream go on in several directions. Inputs of one "
            "name on two clusters can't be told apart in a job, whose positions are kept by name: read each with a job "
            "of its own, or have one mirrored under another name"
        )


def _combined_standing(followers: Iterable[Follower]) -> FollowerStanding:
    every = [follower.standing() for follower in followers]
    witnessed = max((each.witnessed for each in every), default=NOTHING_WITNESSED)
    return FollowerStanding(witnessed, tuple(held for each in every for held in each.ahead))
