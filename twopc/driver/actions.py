"""What a driver does at the edge: a closed set of values, each with the type of its answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from twopc.context import JobContext
from twopc.driver.edge import Edge
from twopc.driver.effects import Action
from twopc.errors import CheckpointCorrupted, TwoPhaseCommitError, Unavailable
from twopc.faults.crash_table import CrashPoint
from twopc.protocol.attempts import StartedAttempt, Traces
from twopc.protocol.facts import Committable, SplitPosition
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex
from twopc.protocol.planned_starts import StartsPlanned
from twopc.runtime.spec import SubtaskSpec
from twopc.sink import Committer, Settled
from twopc.source import FollowerStanding, Split
from twopc.transaction_group import TransactionGroup

# The start of an attempt.


@dataclass(frozen=True, slots=True)
class FindTraces(Action[Traces]):
    """Of a run before its first attempt, `context.attempt` is 0."""

    context: JobContext

    def carry_out(self, edge: Edge) -> Traces:
        with edge.sink.open_committer(self.context) as committer:
            return committer.traces()


@dataclass(frozen=True, slots=True)
class StartAttempt(Action[StartedAttempt]):
    """`context.attempt` is the one before, if this run had one."""

    context: JobContext
    restore_from: str
    traces: Traces
    restart: bool

    def carry_out(self, edge: Edge) -> StartedAttempt:
        return edge.coordinator.start_attempt(
            self.context.job,
            self.context.settings,
            self.restore_from,
            self.traces,
            restart=self.restart,
            restart_of=self.context.attempt,
        )


@dataclass(frozen=True, slots=True)
class FindStanding(Action[tuple[str, FollowerStanding]]):
    """Who follows the sources' positions, by name, and how far that is; nobody is called nothing."""

    context: JobContext

    def carry_out(self, edge: Edge) -> tuple[str, FollowerStanding]:
        with edge.source.open_planner(self.context) as planner:
            return planner.standing()


# Recovery.


@dataclass(frozen=True, slots=True)
class Reach(Action[None]):
    """A named place where this process may be stopped."""

    point: CrashPoint
    checkpoint_id: CheckpointId

    def carry_out(self, edge: Edge) -> None:
        edge.reached(self.point, self.checkpoint_id)


@dataclass(frozen=True, slots=True)
class OpenCommitter(Action[None]):
    """Open the committer of an attempt, which all that follows here uses."""

    context: JobContext

    def carry_out(self, edge: Edge) -> None:
        edge.committer = edge.sink.open_committer(self.context)


@dataclass(frozen=True, slots=True)
class CloseCommitter(Action[None]):
    """Let go of the committer that is open, if one is."""

    def carry_out(self, edge: Edge) -> None:
        committer, edge.committer = edge.committer, None
        if committer is not None:
            committer.close()


@dataclass(frozen=True, slots=True)
class Claim(Action[None]):
    """Make the attempt known where the output goes; Fenced if another run has a later one."""

    def carry_out(self, edge: Edge) -> None:
        _committer(edge).claim()


@dataclass(frozen=True, slots=True)
class Settle(Action[list[Settled]]):
    """Ask what became of each committable, and commit what is open."""

    committables: tuple[Committable, ...]
    confirmed: frozenset[str]

    def carry_out(self, edge: Edge) -> list[Settled]:
        return _committer(edge).settle(self.committables, self.confirmed)


@dataclass(frozen=True, slots=True)
class GiveUp(Action[list[Settled]]):
    """Make sure that what was held back is never committed."""

    committables: tuple[Committable, ...]

    def carry_out(self, edge: Edge) -> list[Settled]:
        return _committer(edge).give_up(self.committables)


@dataclass(frozen=True, slots=True)
class CommitHeld(Action[list[Settled]]):
    """Commit what was held back, as a person goes on without what was lost before it."""

    committables: tuple[Committable, ...]

    def carry_out(self, edge: Edge) -> list[Settled]:
        return _committer(edge).commit_held(self.committables)


@dataclass(frozen=True, slots=True)
class Confirm(Action[None]):
    """Without names it asks whether the attempt still owns the job: raises Fenced if it doesn't."""

    context: JobContext
    checkpoint_id: CheckpointId
    names: tuple[str, ...] = ()

    def carry_out(self, edge: Edge) -> None:
        edge.coordinator.confirm(self.context.job, self.context.attempt, self.checkpoint_id, self.names)


@dataclass(frozen=True, slots=True)
class SettleLoss(Action[None]):
    """Store what becomes of transactions that are lost."""

    context: JobContext
    checkpoint_id: CheckpointId
    names: tuple[str, ...]
    bases: Mapping[SubtaskIndex, CheckpointId]
    message: str

    def carry_out(self, edge: Edge) -> None:
        edge.coordinator.settle_loss(
            self.context.job, self.context.attempt, self.checkpoint_id, self.names, self.bases, self.message
        )


@dataclass(frozen=True, slots=True)
class FindUnreadable(Action[dict[SplitPosition, str]]):
    """Those of the positions that can't be read from any more, each with what is gone."""

    context: JobContext
    positions: tuple[SplitPosition, ...]

    def carry_out(self, edge: Edge) -> dict[SplitPosition, str]:
        with edge.source.open_planner(self.context) as planner:
            return planner.unreadable(self.positions)


@dataclass(frozen=True, slots=True)
class AbortLingering(Action[list[str]]):
    """Abort what earlier attempts left open; the names."""

    def carry_out(self, edge: Edge) -> list[str]:
        return _committer(edge).abort_lingering()


@dataclass(frozen=True, slots=True)
class CommitGlobally(Action[None]):
    """Let the global committers commit what they still have to, one checkpoint after the other, and confirm each.

    Raises GlobalCommitFailed where one of them can't; Unavailable where the coordinator does not answer.
    """

    context: JobContext

    def carry_out(self, edge: Edge) -> None:
        job, attempt = self.context.job, self.context.attempt
        while (due := edge.coordinator.next_global_commit(job, attempt)) is not None:
            edge.reached(CrashPoint.BEFORE_GLOBAL_COMMIT, due.checkpoint_id)
            edge.sink.commit_globally(self.context, due)
            edge.reached(CrashPoint.AFTER_GLOBAL_COMMIT, due.checkpoint_id)
            names = tuple(item.name for item in due.committables)
            edge.coordinator.confirm(job, attempt, due.checkpoint_id, names)
            edge.reached(CrashPoint.AFTER_GLOBAL_CONFIRM, due.checkpoint_id)


# The plan.


@dataclass(frozen=True, slots=True)
class PlanSplits(Action[list[Split]]):
    """List the splits of the source, from the positions that are known; refuse those that a sink can't take."""

    context: JobContext
    known: Mapping[str, SplitPosition]
    bounded: bool

    def carry_out(self, edge: Edge) -> list[Split]:
        with edge.source.open_planner(self.context) as planner:
            splits = planner.plan(self.known, self.bounded)
        for key, sink in edge.definition.sinks.items():
            before = edge.definition.sources_before(key)
            sink.check_splits(self.context, [split for split in splits if split.source in before])
        return splits


@dataclass(frozen=True, slots=True)
class StoreStarts(Action[None]):
    """Store where reading begins, before anything is read."""

    job: str
    planned: StartsPlanned

    def carry_out(self, edge: Edge) -> None:
        edge.coordinator.plan_starts(self.job, self.planned)


@dataclass(frozen=True, slots=True)
class Clusters:
    """Who follows the source's positions, which cluster keeps that, and which one the sinks' transactions are on.

    None of the latter where there are several: the positions of two transactions could overtake each other.
    """

    follower: str | None
    of_follower: str | None
    of_sinks: str | None
    groups: tuple[TransactionGroup, ...] = ()

    def witness(self) -> tuple[str | None, str | None]:
        """Return whom transactions tell the positions, as a witness of their outcome; None and why, where they don't.

        A transaction ends on one cluster: a follower that another cluster keeps is told beside it.
        """
        if self.follower is None or self.of_sinks is None:
            return None, None
        if self.of_follower == self.of_sinks:
            return self.follower, None
        return None, (
            f"the input is on cluster {self.of_follower}, the output on {self.of_sinks}: {self.follower!r} is told of "
            "positions after each commit, and no transaction has them as a witness"
        )


@dataclass(frozen=True, slots=True)
class FindClusters(Action[Clusters]):
    """Ask on which clusters the source's follower and the sinks' transactions are."""

    context: JobContext

    def carry_out(self, edge: Edge) -> Clusters:
        groups = edge.sink.groups_of_run(self.context)
        clusters = [each.cluster for each in groups if each.cluster is not None]
        into = clusters[0] if len(clusters) == 1 else None
        with edge.source.open_planner(self.context) as planner:
            follower = planner.follower()
            if follower is None:
                return Clusters(None, None, into, groups)
            return Clusters(follower.name, None if into is None else follower.cluster(), into, groups)


# The subtasks.


@dataclass(frozen=True, slots=True)
class FindHostNotice(Action[str | None]):
    """What the host has to start first, and takes long."""

    on_calling_thread = True

    def carry_out(self, edge: Edge) -> str | None:
        return edge.host.notice()


@dataclass(frozen=True, slots=True)
class Submit(Action[None]):
    """Start one subtask a spec."""

    specs: tuple[SubtaskSpec, ...]
    on_calling_thread = True

    def carry_out(self, edge: Edge) -> None:
        edge.stage = edge.host.submit(edge.definition, self.specs)


@dataclass(frozen=True, slots=True)
class FindShortage(Action[str | None]):
    """What the subtasks wait for before they can start."""

    on_calling_thread = True

    def carry_out(self, edge: Edge) -> str | None:
        return None if edge.stage is None else edge.stage.shortage()


@dataclass(frozen=True, slots=True)
class Drain(Action[None]):
    """Let the subtasks of a job that has finished end by themselves."""

    seconds: float
    on_calling_thread = True

    def carry_out(self, edge: Edge) -> None:
        if edge.stage is not None:
            edge.stage.drain(self.seconds)


@dataclass(frozen=True, slots=True)
class Kill(Action[None]):
    """End the subtasks now."""

    on_calling_thread = True

    def carry_out(self, edge: Edge) -> None:
        if edge.stage is not None:
            edge.stage.kill()
            edge.stage = None


@dataclass(frozen=True, slots=True)
class RequestStop(Action[None]):
    """Ask the coordinator for a last checkpoint."""

    context: JobContext

    def carry_out(self, edge: Edge) -> None:
        edge.coordinator.stop(self.context.job, self.context.attempt)


# The end of an attempt.


@dataclass(frozen=True, slots=True)
class EndAttempt(Action[None]):
    """Tell the coordinator that the attempt is over, and why."""

    context: JobContext
    reason: str

    def carry_out(self, edge: Edge) -> None:
        edge.coordinator.end_attempt(self.context.job, self.context.attempt, self.reason)


@dataclass(frozen=True, slots=True)
class NameDamage(Action[TwoPhaseCommitError]):
    """Look for all that is damaged, and name it in one error."""

    error: CheckpointCorrupted
    checkpoint_id: CheckpointId | None

    def carry_out(self, edge: Edge) -> TwoPhaseCommitError:
        return edge.all_damage(self.error, self.checkpoint_id)


@dataclass(frozen=True, slots=True)
class RemoveWork(Action[None]):
    """Remove what subtasks of an attempt on this machine left in temporary folders."""

    attempt: AttemptId

    def carry_out(self, edge: Edge) -> None:
        edge.remove_work(self.attempt)


def _committer(edge: Edge) -> Committer:
    if edge.committer is None:
        raise Unavailable("the attempt that asks is over")
    return edge.committer
