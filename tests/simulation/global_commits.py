"""The table that the simulated sink's global committer commits to, in the runs that have one: it judges each commit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.simulation.job import JOB
from tests.simulation.world import World
from twopc.kafka.transactions.naming import parse_transactional_id
from twopc.protocol.facts import Committable
from twopc.protocol.ids import AttemptId, CheckpointId
from twopc.sink import GlobalCommitter

COMMIT_MS = (1, 400)
"""How long a commit takes: some take longer than a checkpoint."""


@dataclass(slots=True)
class GlobalTable:
    """The commits by checkpoint. `committed` are the committables of all sinks that were committed."""

    world: World
    committed: set[str]
    commits: dict[CheckpointId, frozenset[str]] = field(default_factory=dict)

    @property
    def visible(self) -> set[str]:
        """What the brokers have committed of the first sink, which is the one with a global committer."""
        return {name for name in self.committed if name.startswith(f"{JOB}-")}

    @property
    def names(self) -> frozenset[str]:
        return frozenset(name for names in self.commits.values() for name in names)

    def commit(self, checkpoint_id: CheckpointId, names: frozenset[str]) -> None:
        """Enter a commit; one that was made before may come again as it was."""
        self.world.note("table", "COMMIT", checkpoint_id, sorted(names))
        if checkpoint_id in self.commits:
            if self.commits[checkpoint_id] != names:
                before = sorted(self.commits[checkpoint_id])
                self.world.violated("another global commit of one checkpoint", f"{sorted(names)} after {before}")
            return
        if checkpoint_id < max(self.commits, default=0):
            self.world.violated("a global commit out of order", f"{checkpoint_id} after {max(self.commits)}")
        if twice := names & self.names:
            self.world.violated("committed globally twice", sorted(twice))
        self.commits[checkpoint_id] = names

    def judge_sweep(self, attempt: AttemptId) -> None:
        """What earlier attempts have committed must be there before an attempt sweeps for the first time."""
        earlier = {name for name in self.visible if _attempt_of(name) < attempt}
        if missing := earlier - self.names:
            self.world.violated("swept before the global commit", sorted(missing))

    def judge(self) -> None:
        """In the end exactly that is there which readers of the brokers see."""
        if self.names != self.visible:
            missing, more = sorted(self.visible - self.names), sorted(self.names - self.visible)
            self.world.violated("global commits are not exactly once", f"missing {missing}, too many {more}")


class SimGlobalCommitter(GlobalCommitter):
    """Takes its time before and after it commits; it may be killed in both."""

    def __init__(self, table: GlobalTable) -> None:
        self._table = table

    def commit(self, checkpoint_id: CheckpointId, committables: Sequence[Committable]) -> None:
        world = self._table.world
        world.sleep(world.between(*COMMIT_MS) / 1000)
        self._table.commit(checkpoint_id, frozenset(item.name for item in committables))
        world.sleep(world.between(*COMMIT_MS) / 1000)


def _attempt_of(name: str) -> AttemptId:
    parsed = parse_transactional_id(JOB, name.partition("@")[0])
    assert parsed is not None, f"{name} is no committable of the job"
    return parsed.attempt
