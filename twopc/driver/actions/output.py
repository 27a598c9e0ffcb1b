"""The driver's actions on the output: settles, commits, aborts."""

from __future__ import annotations

from dataclasses import dataclass

from twopc.context import JobContext
from twopc.driver.edge import Edge
from twopc.driver.effects import Action
from twopc.errors import Unavailable
from twopc.faults.crash_table import CrashPoint
from twopc.protocol import requests
from twopc.protocol.attempts import GlobalCommit, Traces
from twopc.protocol.facts import Committable, KnownOutput
from twopc.sink import Committer, Settled


@dataclass(frozen=True, slots=True)
class FindTraces(Action[Traces]):
    """Of a run before its first attempt, `context.attempt` is 0."""

    context: JobContext

    def carry_out(self, edge: Edge) -> Traces:
        with edge.sink.open_committer(self.context) as committer:
            return committer.traces()


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
class AbortLingering(Action[list[str]]):
    """Abort what earlier attempts left open; the names."""

    def carry_out(self, edge: Edge) -> list[str]:
        return _committer(edge).abort_lingering()


@dataclass(frozen=True, slots=True)
class CompareOutputs(Action[None]):
    """Say what has become of the outputs since the latest completed checkpoint."""

    known: tuple[KnownOutput, ...]

    def carry_out(self, edge: Edge) -> None:
        _committer(edge).compare(self.known)


@dataclass(frozen=True, slots=True)
class CommitGlobally(Action[None]):
    """Let the global committers commit what they still have to, one checkpoint after the other, and confirm each.

    Raises GlobalCommitFailed where one of them can't; Unavailable where the coordinator does not answer.
    """

    context: JobContext

    def carry_out(self, edge: Edge) -> None:
        job, attempt = self.context.job, self.context.attempt
        while (due := edge.coordinator.ask(job, requests.NextGlobalCommit(attempt))) is not None:
            edge.reached(CrashPoint.BEFORE_GLOBAL_COMMIT, due.checkpoint_id)
            edge.sink.commit_globally(self.context, due)
            edge.reached(CrashPoint.AFTER_GLOBAL_COMMIT, due.checkpoint_id)
            names = tuple(item.name for item in due.committables)
            edge.coordinator.ask(job, requests.ConfirmCommittables(attempt, due.checkpoint_id, names))
            edge.reached(CrashPoint.AFTER_GLOBAL_CONFIRM, due.checkpoint_id)


@dataclass(frozen=True, slots=True)
class FindGlobalCommit(Action[GlobalCommit | None]):
    """The next global commit, if there is one."""

    context: JobContext

    def carry_out(self, edge: Edge) -> GlobalCommit | None:
        return edge.coordinator.ask(self.context.job, requests.NextGlobalCommit(self.context.attempt))


def _committer(edge: Edge) -> Committer:
    if edge.committer is None:
        raise Unavailable("the attempt that asks is over")
    return edge.committer
