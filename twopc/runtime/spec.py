"""The specification of a subtask of one attempt, as a host is given it: plain data that travels as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from twopc.config import RunSettings
from twopc.context import SubtaskContext
from twopc.protocol.facts import SubtaskSnapshot
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex
from twopc.source import Split
from twopc.state.layout import parse_snapshot_path
from twopc.transaction_group import TransactionGroup


@dataclass(frozen=True, slots=True)
class SubtaskSpec:
    """One subtask to run.

    `coordinator` and `token` say where to attach; `splits` what to read; `snapshots` those of the restored checkpoint
    that concern it, which after a change of parallelism may be several; empty to start afresh. `groups` are the
    transaction groups of the sinks; `follower` is whom transactions tell the positions, None where it is told beside
    them. `moved_keys` names the operators whose restored state, if there is any, is where the keys no longer are, and
    says why.
    """

    job: str
    attempt: AttemptId
    subtask: SubtaskIndex
    parallelism: int
    coordinator: str
    token: str = field(repr=False)
    settings: RunSettings
    splits: tuple[Split, ...]
    snapshots: tuple[SubtaskSnapshot, ...]
    groups: tuple[TransactionGroup, ...] = ()
    follower: str | None = None
    moved_keys: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def context(self) -> SubtaskContext:
        return SubtaskContext(self.job, self.attempt, self.parallelism, self.settings, self.subtask)

    @property
    def base(self) -> CheckpointId:
        """The checkpoint that this subtask's part of the state comes from; 0 for none, or if it comes from several."""
        bases = {parse_snapshot_path(snapshot.state.path)[0] for snapshot in self.snapshots}
        return bases.pop() if len(bases) == 1 else CheckpointId(0)
