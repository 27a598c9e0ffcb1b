"""Breaks of what holds for several sinks: of their transaction groups, and of a job that lost one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import twopc.driver.lost_transactions
from tests.simulation.mutants import EXPIRING, Mutant, instead
from twopc.driver.actions import Clusters
from twopc.errors import CheckpointDeclined
from twopc.faults.crash_table import CrashPoint
from twopc.job_connectors import JobCommitter
from twopc.protocol.facts import CheckpointMetadata, SubtaskSnapshot
from twopc.protocol.healing import Fate, plan
from twopc.protocol.ids import CheckpointId
from twopc.runtime.inputs import Inputs
from twopc.runtime.subtask import Subtask
from twopc.sink import Outcome, Settled

_pre_commit = Subtask._pre_commit
_settle = JobCommitter.settle


def _forget_what_was_pre_committed(subtask: Any, checkpoint_id: CheckpointId, positions: Any) -> None:
    before = list(subtask._state._pending)
    try:
        _pre_commit(subtask, checkpoint_id, positions)
    except CheckpointDeclined:
        subtask._state._pending = before
        raise


def _settle_by_any(committer: Any, committables: Sequence[Any], confirmed: frozenset[str]) -> list[Settled]:
    """Let the first group settle what is left of a group that the job no longer has."""
    first = next(iter(committer._committers))
    own = dict(zip(committer._committers, committer._committers, strict=True))
    committer._renamed = {item.group: own.get(item.group, first) for item in committables}
    return committer._each(committables, lambda each, due: each.settle(due, confirmed))  # type: ignore[no-any-return]


def _settle_as_renamed(committer: Any, committables: Sequence[Any], confirmed: frozenset[str]) -> list[Settled]:
    """Take what is there of one group for that of the only one that is left, renamed."""
    if len({item.group for item in committables}) == 1:
        committables = [replace(item, is_sole=True) for item in committables]
    return _settle(committer, committables, confirmed)


def _take_for_committed(committer: Any, committables: Sequence[Any], confirmed: frozenset[str]) -> list[Settled]:
    """Pass over what is left of a group that the job no longer has."""
    gone = [item for item in committables if item.group not in committer._committers]
    kept = [item for item in committables if item.group in committer._committers]
    return _settle(committer, kept, confirmed) + [Settled(item, Outcome.ALREADY_COMMITTED, "no sink") for item in gone]


def _heal_blindly(
    latest: CheckpointMetadata, fates: Mapping[str, Fate], earlier: Sequence[CheckpointMetadata], gone: Any
) -> Any:
    """Plan as if nothing were committed of a checkpoint that another group has lost its part of."""

    def of_losers(snapshot: SubtaskSnapshot) -> SubtaskSnapshot:
        lost = [item.checkpoint_id for item in snapshot.committables if fates[item.name] is not Fate.COMMITTED]
        kept = tuple(
            item
            for item in snapshot.committables
            if not lost or fates[item.name] is not Fate.COMMITTED or item.checkpoint_id < min(lost)
        )
        return SubtaskSnapshot.of(
            snapshot.subtask, snapshot.positions, snapshot.state, kept, snapshot.finished, snapshot.base
        )

    snapshots = tuple(map(of_losers, latest.snapshots))
    return plan(replace(latest, snapshots=snapshots), fates, earlier, gone)


BESIDE = {"sinks": ("out", "files"), "files_decline": 0.4, "fault_phase_ms": 3_000, "sizes": (8, 8)}
HALF_COMMITTED = EXPIRING | {
    "aimed_at": CrashPoint.BETWEEN_COMMITS,
    "aimed_pauses": False,
    "aimed_occasion": 1,
    "aimed_in_company": True,
    "sizes": (8, 8),
    "other_sizes": (),
    "stopped_every_ms": 0,
}
TWO_PREFIXES = HALF_COMMITTED | {
    "sinks": ("out", "prefix"),
    "prepare_ms": 0,
    "snapshot_refused": 0.0,
    "broker_away_every_ms": 300,
    "ids_forgotten_every_ms": 200,
    "topic_recreated_every_ms": 0,
    "input_recreated_every_ms": 0,
    "input_deleted_every_ms": 0,
}
REMOVED = BESIDE | {"sink_removed_every_ms": 400, "commits_globally": False}

MEETING = {"sizes": (8, 8), "other_sizes": (8, 8), "fault_phase_ms": 3_000}

MUTANTS_OF_GRAPHS = (
    Mutant(
        "what the first group pre-committed is forgotten when the second declines",
        instead(Subtask, "_pre_commit", _forget_what_was_pre_committed),
        BESIDE,
        1_000,
    ),
    Mutant(
        "positions are told in two transactions",
        instead(Clusters, "witness", lambda clusters: (clusters.follower, None)),
        TWO_PREFIXES,
        3_000,
        timeouts=True,
    ),
    Mutant(
        "a removed group's output is settled by another",
        instead(JobCommitter, "settle", _settle_by_any),
        REMOVED,
        1_000,
    ),
    Mutant(
        "a removed group's output is taken for that of the only sink, renamed",
        instead(JobCommitter, "settle", _settle_as_renamed),
        REMOVED | {"sinks": ("out", "files"), "follower_elsewhere": True},
        2_000,
    ),
    Mutant(
        "a removed group's output is taken for committed",
        instead(JobCommitter, "settle", _take_for_committed),
        REMOVED,
        1_000,
    ),
    Mutant(
        "a checkpoint passes over records that are held for their order",
        instead(Inputs, "_first_held", lambda inputs, source: ()),
        MEETING,
        1_000,
    ),
    Mutant(
        "a loss is healed though another group committed",
        instead(twopc.driver.lost_transactions, "plan", _heal_blindly),
        HALF_COMMITTED | {"sinks": ("files", "out"), "files_decline": 0.0, "sink_removed_every_ms": 0},
        3_000,
        timeouts=True,
    ),
)
