"""The preparation of an attempt, before its first subtask: recovery, the plan, and what is refused. Pure.

Late or twice, it does no harm.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from twopc import events
from twopc.config import RunSettings
from twopc.context import JobContext
from twopc.driver.actions import Confirm, FindClusters, FindStanding, OpenCommitter
from twopc.driver.effects import UNTIMED, Log, Script, Tell, do
from twopc.driver.input_watch import tell_what_a_bounded_read_leaves
from twopc.driver.recovery import Planner, RecoveryResult, recovery
from twopc.driver.restore_checks import (
    emptied_states,
    goes_back,
    moved_keys_of,
    refuse_dropped_but_read,
    refuse_emptied_states,
    refuse_moved_on,
    refuse_unknown_middle,
    refuse_unread_inputs,
    repeated_output,
)
from twopc.driver.running_job import RunningJob
from twopc.errors import ConfigurationError
from twopc.listing import listed
from twopc.partition_groups import assign, concerning, owned
from twopc.protocol.attempts import StartedAttempt
from twopc.protocol.checkpoints import LATEST
from twopc.protocol.facts import CheckpointMetadata
from twopc.protocol.ids import NO_CHECKPOINT, SubtaskIndex
from twopc.protocol.planned_starts import NOTHING_WITNESSED, Witnessed
from twopc.runtime.spec import SubtaskSpec
from twopc.sink import Outcome
from twopc.source import FollowerStanding, Split
from twopc.transaction_group import TransactionGroup


@dataclass(frozen=True, slots=True)
class Preparation:
    """Of one attempt, which restores what `restore_from` says; `goes_on` behind another attempt of the same run."""

    job: RunningJob
    settings: RunSettings
    planner: Planner
    restore_from: str
    goes_on: bool

    def script(self, context: JobContext, started: StartedAttempt) -> Script[tuple[SubtaskSpec, ...]]:
        """Recover and plan; return what each subtask is to do."""
        yield OpenCommitter(context)
        source, dropped = self.job.definition.source, frozenset(self.settings.drop_inputs)
        # Before anything is changed on the broker, where the source knows what it reads; else when it has planned.
        if inputs := source.inputs:
            refuse_unread_inputs(
                started.restored, lambda split: source.input_of(split) in inputs, source.input_of, inputs, dropped
            )
        # Before anything is taken over from whoever knows more, and when nothing can change any more.
        standing = yield from self._checked_standing(context, started)
        known = NOTHING_WITNESSED if self.restore_from == LATEST else standing.witnessed
        back = goes_back(started.latest, started.restored, known)
        recovered = yield from recovery(context, started)
        standing = yield from self._checked_standing(context, started)
        yield from _tell_recovery(context, recovered)
        restored = recovered.restored
        splits = yield from self.planner.plan(context, started, restored, standing.witnessed, goes_back=back)
        read = {split.id for split in splits}
        refuse_unread_inputs(restored, read.__contains__, source.input_of, map(source.input_of, read), dropped)
        refuse_dropped_but_read(restored, splits, source.input_of, dropped)
        if (twice := repeated_output(started.latest, started.restored, splits, source.precedes)) is not None:
            yield Log(logging.WARNING, twice, never_hidden=True)
        yield from self._tell_starts(context, restored, splits)
        yield from tell_what_a_bounded_read_leaves(context, source, splits)
        clusters = yield from do(FindClusters(context))
        follower, why_none = clusters.witness()
        if why_none is not None:
            yield Log(logging.INFO, why_none)
        assigned = assign(splits, context.parallelism, self.job.definition.keyed_sources)
        if (idle := idle_subtasks(assigned)) is not None:
            yield Log(logging.WARNING, idle)
        return self._specs(context, assigned, restored, clusters.groups, follower)

    def _specs(
        self,
        context: JobContext,
        assigned: Sequence[tuple[Split, ...]],
        restored: CheckpointMetadata | None,
        groups: tuple[TransactionGroup, ...],
        follower: str | None,
    ) -> tuple[SubtaskSpec, ...]:
        snapshots = () if restored is None else restored.snapshots
        keyed = self.job.definition.keyed_sources
        before = () if restored is None else (held.split for held in restored.positions)
        moved = moved_keys_of(self.job.definition, frozenset(before), [split for share in assigned for split in share])
        return tuple(
            SubtaskSpec(
                job=context.job,
                attempt=context.attempt,
                subtask=SubtaskIndex(index),
                parallelism=context.parallelism,
                coordinator=self.job.address,
                token=self.job.token,
                settings=self.settings,
                splits=splits,
                snapshots=concerning(SubtaskIndex(index), owned(splits, keyed), snapshots),
                groups=groups,
                follower=follower,
                moved_keys=moved,
            )
            for index, splits in enumerate(assigned)
        )

    def _tell_starts(
        self, context: JobContext, restored: CheckpointMetadata | None, splits: Sequence[Split]
    ) -> Script[None]:
        """Tell from where what is read is read on, or that states begin empty there."""
        if restored is not None:
            starts = listed(str(split.begin) for split in splits)
            number = restored.checkpoint_id
            yield Tell(
                events.CheckpointRestored(context.job, context.attempt, UNTIMED, checkpoint_id=number, starts=starts)
            )
        elif self.settings.restore_from == LATEST:
            states, skips = self._states(), self.job.definition.source.skips
            empty = emptied_states(states, splits, skips, self.settings.checkpoint_dir)
            if empty is not None:
                yield Log(logging.WARNING, empty)

    def _states(self) -> list[str]:
        return list(map(str, self.job.definition.state_serdes))

    def _checked_standing(self, context: JobContext, started: StartedAttempt) -> Script[FollowerStanding]:
        """Refuse to start where the brokers know more than the ledger; who names a start, or goes on, knows it."""
        follower, standing = yield from do(FindStanding(context))
        if self.restore_from != LATEST or self.goes_on:
            return standing
        states, folder = self._states(), self.settings.checkpoint_dir
        newest = started.latest
        latest = NOTHING_WITNESSED if newest is None else Witnessed(newest.checkpoint_id, newest.attempt)
        accepted = None if started.planned is None else started.planned.witnessed
        try:
            refuse_moved_on(follower, standing.witnessed, latest, folder, accepted)
        except ConfigurationError:
            # Whoever was held up while another took the job over sees that one's positions: it is fenced, no more.
            yield Confirm(context, NO_CHECKPOINT)
            raise
        if started.restored is not None:
            refuse_unknown_middle(states, standing, started.restored, self.job.definition.source.input_of)
        elif started.planned is None:
            refuse_emptied_states(states, standing, folder)
        return standing


def idle_subtasks(assigned: Sequence[Sequence[Split]]) -> str | None:
    """Say that some subtasks read nothing; None where all do."""
    if idle := sum(not splits for splits in assigned):
        return f"{idle} of {len(assigned)} subtasks read nothing: splits to read: {sum(map(len, assigned))}"
    return None


def _tell_recovery(context: JobContext, recovered: RecoveryResult) -> Script[None]:
    """Tell what recovery did, in the same stream as the coordinator's events."""
    job, attempt = context.job, context.attempt
    if recovered.restored is not None:
        yield Log(logging.DEBUG, f"attempt {attempt}: restored checkpoint {recovered.restored.checkpoint_id}")
    for item in recovered.settled:
        committable = item.committable
        yield Log(logging.DEBUG, f"transaction {committable.name}: {item.outcome.value} ({item.evidence})")
        if item.outcome is Outcome.COMMITTED:
            yield Tell(
                events.TransactionResumed(
                    job,
                    attempt,
                    UNTIMED,
                    checkpoint_id=committable.checkpoint_id,
                    subtask=committable.subtask,
                    transaction=committable.name,
                )
            )
    for name in recovered.lingering:
        yield Tell(events.TransactionAborted(job, attempt, UNTIMED, transaction=name))
    if recovered.lingering:
        yield Log(logging.DEBUG, f"lingering transactions aborted: {listed(recovered.lingering)}")
