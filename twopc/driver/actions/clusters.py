"""The clusters that keep the positions of the input, and the transactions of the output."""

from __future__ import annotations

from dataclasses import dataclass

from twopc.context import JobContext
from twopc.driver.edge import Edge
from twopc.driver.effects import Action
from twopc.transaction_group import TransactionGroup


@dataclass(frozen=True, slots=True)
class Clusters:
    """The follower of the source's positions, the cluster that keeps them, and the one of the sinks' transactions.

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
        clusters = [group.cluster for group in groups if group.cluster is not None]
        into = clusters[0] if len(clusters) == 1 else None
        with edge.source.open_planner(self.context) as planner:
            follower = planner.follower()
            if follower is None:
                return Clusters(None, None, into, groups)
            return Clusters(follower.name, None if into is None else follower.cluster(), into, groups)
