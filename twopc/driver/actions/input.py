"""The driver's questions to the sources: how far they are, and which splits there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from twopc.context import JobContext
from twopc.driver.edge import Edge
from twopc.driver.effects import Action
from twopc.protocol.facts import CheckpointMetadata, SplitPosition
from twopc.source import FollowerStanding, Split


@dataclass(frozen=True, slots=True)
class FindStanding(Action[tuple[str, FollowerStanding]]):
    """The followers of the sources' positions, by name, and how far each is; nobody is called nothing."""

    context: JobContext

    def carry_out(self, edge: Edge) -> tuple[str, FollowerStanding]:
        with edge.source.open_planner(self.context) as planner:
            return planner.standing()


@dataclass(frozen=True, slots=True)
class FindUnreadable(Action[dict[SplitPosition, str]]):
    """The positions that can't be read from any more, each with what is gone."""

    context: JobContext
    positions: tuple[SplitPosition, ...]

    def carry_out(self, edge: Edge) -> dict[SplitPosition, str]:
        with edge.source.open_planner(self.context) as planner:
            return planner.unreadable(self.positions)


@dataclass(frozen=True, slots=True)
class PlanSplits(Action[list[Split]]):
    """List the splits of the source, from the positions that are known; refuse those that a sink can't take."""

    context: JobContext
    known: Mapping[str, SplitPosition]
    bounded: bool

    def carry_out(self, edge: Edge) -> list[Split]:
        with edge.source.open_planner(self.context) as planner:
            splits = planner.plan(self.known, self.bounded)
        refuse_what_no_sink_takes(edge, self.context, splits)
        return splits


@dataclass(frozen=True, slots=True)
class FindCourse(Action[tuple[SplitPosition, ...]]):
    """The positions of a checkpoint in what the job writes itself, which pass over what it has written since."""

    context: JobContext
    restored: CheckpointMetadata

    def carry_out(self, edge: Edge) -> tuple[SplitPosition, ...]:
        with edge.source.open_planner(self.context) as planner:
            return tuple(planner.on_course(self.restored))


def refuse_what_no_sink_takes(edge: Edge, context: JobContext, splits: Sequence[Split]) -> None:
    """Raise ConfigurationError where a sink can't take what comes of these splits, or writes them itself."""
    for key, sink in edge.definition.sinks.items():
        before = edge.definition.sources_before(key)
        sink.check_splits(context, [split for split in splits if split.source in before])
        own = edge.definition.sources_behind(key)
        sink.refuse_inputs(context, [split for split in splits if split.source not in own])
