"""Deliberate breaks of the protocol, each as a patch of production code that is in force while a seed is played."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from unittest.mock import patch

import coordinator.jobs
import coordinator.restore_plan
import tests.simulation.coordinator
import tests.simulation.sink
import tests.simulation.subtask
import twopc.driver.lost_transactions
import twopc.driver.preparation
import twopc.driver.recovery
import twopc.kafka.clients.retry
import twopc.kafka.transactions.resume
import twopc.protocol.ledger_state
import twopc.state.restore
from coordinator.attempt import RunningAttempt
from coordinator.checkpoint import PendingCheckpoint
from coordinator.core import Core
from coordinator.events import Stored
from coordinator.shell import JobShell
from tests.simulation.clocks import SimClock
from tests.simulation.faults import draw
from tests.simulation.filesystem import SimDisk
from tests.simulation.shrink import Case
from twopc.driver.actions import AbortLingering
from twopc.errors import CheckpointCorrupted
from twopc.faults.points import CrashPoint
from twopc.kafka.transactions.naming import SlotName, transactional_id
from twopc.kafka.transactions.resume import settle
from twopc.kafka.transactions.slots import SlotPool, SlotState
from twopc.kafka.transactions.transactional import TransactionalWriter
from twopc.protocol.facts import CheckpointMetadata, SubtaskSnapshot
from twopc.protocol.healing import Fate, plan
from twopc.protocol.ids import AttemptId, CheckpointId
from twopc.protocol.ledger_place import LedgerPlace
from twopc.protocol.messages import Abort, Ack, Complete, Trigger
from twopc.protocol.subtask_state import CommitPending, SubtaskState
from twopc.protocol.times import Instant
from twopc.runtime.commit_queue import CommitQueue
from twopc.runtime.outputs import Outputs
from twopc.runtime.snapshot_pipeline import SnapshotPipeline
from twopc.runtime.subtask import Subtask
from twopc.sink import Outcome, Settled

Patch = Callable[[], AbstractContextManager[Any]]


@dataclass(frozen=True)
class Mutant:
    """One break, among how many seeds it must be caught, and the faults that bring it out sooner than chance."""

    what: str
    apply: Patch
    faults: Mapping[str, Any] = field(default_factory=dict)
    seeds: int = 10_000
    timeouts: bool = False

    def case(self, seed: int) -> Case:
        return Case(seed, replace(draw(seed, timeouts=self.timeouts), **self.faults))

    def __str__(self) -> str:
        return self.what.replace(" ", "-")


def instead(owner: object, name: str, value: object) -> Patch:
    return lambda: patch.object(owner, name, value)


def _around(owner: Any, name: str, wrapper: Callable[..., Any]) -> Patch:
    """Call `wrapper(original, self, *args)` instead of a method."""
    original = getattr(owner, name)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return wrapper(original, self, *args, **kwargs)

    return instead(owner, name, method)


def _any_trigger(on: Any, state: SubtaskState, message: Any) -> Any:
    if isinstance(message, Trigger) and message.checkpoint_id <= state.last_seen:
        state.last_seen = CheckpointId(message.checkpoint_id - 1)
    return on(state, message)


def _only_exactly(on: Any, state: SubtaskState, message: Any) -> Any:
    action = on(state, message)
    if isinstance(action, CommitPending):
        due = tuple(entry for entry in action.due if entry.checkpoint_id == action.proof.checkpoint_id)
        return CommitPending(action.proof, due)
    return action


def _abort_slots(outputs: Any, chosen: Callable[[Any], bool]) -> None:
    """Abort pre-committed transactions at the broker."""
    writers: list[Any] = [each for each in outputs._writers.values() if isinstance(each, TransactionalWriter)]
    for writer in writers:
        for slot in writer._pool._slots:
            if slot.state is SlotState.PRE_COMMITTED and chosen(slot):
                writer._broker.end(slot.transactional_id, slot.producer.client.producer, commit=False)


def _abort_with_checkpoint(on: Any, subtask: Any, message: Any) -> None:
    on(subtask, message)
    if isinstance(message, Abort):
        number = message.checkpoint_id
        _abort_slots(subtask._deps.outputs, lambda slot: slot.checkpoint == number)
        state = subtask._state
        state._pending = [entry for entry in state._pending if entry.checkpoint_id != number]


def _abort_at_close(abort: Any, outputs: Any) -> None:
    _abort_slots(outputs, lambda slot: True)
    abort(outputs)


def _sweep_first(context: Any, started: Any) -> Any:
    yield AbortLingering()
    return (yield from twopc.driver.recovery.recovery(context, started))


def _free_at_pre_commit(pre_committed: Any, pool: Any, slot: Any, checkpoint: CheckpointId) -> None:
    pre_committed(pool, slot, checkpoint)
    slot.state = SlotState.FREE


@contextmanager
def _reused_at_once() -> Iterator[None]:
    def settled(original: Any, pool: Any, slot: Any, *, doubtful: bool) -> None:
        slot.state = SlotState.FREE

    with _around(SlotPool, "settled", settled)():
        yield


def _never_doubtful(settled: Any, pool: Any, slot: Any, *, doubtful: bool) -> None:
    settled(pool, slot, doubtful=False)


def _tell_before_storing(decide: Any, attempt: Any, state: Any, out: Any) -> None:
    whole = attempt.in_flight.whole()
    if whole is not None:
        attempt.send_all(Complete(whole.checkpoint_id), out)
    decide(attempt, state, out)


def _older_checkpoint(ledger: Any, restore_from: str) -> Any:
    completed = ledger.state.completed
    if not completed:
        return None, None
    return ledger.metadata(completed[-1].checkpoint_id), ledger.metadata(completed[-2:][0].checkpoint_id)


def _from_the_start(plan: Any, planner: Any, context: Any, started: Any, restored: Any, *known: Any, **how: Any) -> Any:
    return plan(planner, context, started, None, *known, **how)


def _planned_anew(plan: Any, planner: Any, context: Any, started: Any, *known: Any, **how: Any) -> Any:
    return plan(planner, context, replace(started, planned=None), *known, **how)


def _without_state(storage: Any, snapshots: Any, numbers: Any, subtask: Any, folder: Any, kind: Any) -> Any:
    return _restore_state(storage, (), numbers, subtask, folder, kind)


_restore_state = twopc.state.restore.restore_state


def _late_positions(original: Any, subtask: Any, *taken: Any) -> Any:
    committables, parts = subtask._state.committables, subtask._deps
    return lambda handle: SubtaskSnapshot.of(
        subtask._index,
        parts.inputs.positions(parts.dataflow.waiting_rows),
        handle,
        committables,
        parts.inputs.finished(),
        subtask._state.base,
    )


def _ack_before_storing(original: Any, storing: Any, taken: Any, snapshot_of: Any, *times: float) -> None:
    from twopc.protocol.facts import StateHandle

    handle = StateHandle(f"chk-{taken.checkpoint_id}/subtask-{storing._index}", "0" * 64, 0, 0)
    storing._link.send(Ack(taken.checkpoint_id, snapshot_of(handle)))
    storing._store.put(taken)


def _say_committed_first(commit: Any, committing: Any, work: Any) -> None:
    committing._done(work)
    waiting: Any = twopc.kafka.clients.retry
    waiting.time.sleep(0.3)
    for entry in work.due:
        for committable in entry.committables:
            committing._outputs.commit(committable, work.proof)


def _one_acknowledgement(pending: Any) -> Any:
    return bool(pending._acks)


def _lost_by_error_code(original: Any) -> Any:
    def turn(client: Any, committable: Any, *how: Any) -> Any:
        return original(client, committable, *how) or Settled(committable, Outcome.LOST, "it said no")

    return turn


def _stored_anyway(store: Any, job: Any, facts: Any) -> Any:
    outcome = store(job, facts)
    if type(outcome) is Stored:
        return outcome
    state = job.core.state
    for fact in facts:
        state = state if isinstance(fact, CheckpointMetadata) else state.apply(fact)
    return Stored(facts, state)


class _WallClock(SimClock):
    """Takes the time of day for a clock that never jumps."""

    def now(self) -> Instant:
        unix_ms = super().now().unix_ms
        return Instant(unix_ms, unix_ms)


def _body_unchecked(data: bytes, source: str) -> Any:
    try:
        envelope = json.loads(data)
        return envelope["kind"], envelope["body"]
    except (ValueError, KeyError) as error:
        raise CheckpointCorrupted(source) from error


@contextmanager
def _damage_unnoticed() -> Iterator[None]:
    with (
        patch.object(twopc.protocol.ledger_state, "open_fact", _body_unchecked),
        patch.object(LedgerPlace, "check", lambda *ignored: None),
    ):
        yield


@contextmanager
def _nothing_repeated() -> Iterator[None]:
    with (
        patch.object(RunningAttempt, "_repeat_missed", lambda attempt, event, state, out: None),
        patch.object(RunningAttempt, "_answer_late", lambda attempt, member, checkpoint_id, state, out: None),
    ):
        yield


@contextmanager
def _no_sweeps() -> Iterator[None]:
    with (
        patch.object(tests.simulation.sink, "fence_earlier", lambda *ignored: []),
        patch.object(tests.simulation.sink, "abort_open", lambda *ignored: []),
    ):
        yield


@contextmanager
def _same_ids_in_every_attempt() -> Iterator[None]:
    def without_attempt(prefix: str, name: SlotName) -> str:
        return transactional_id(prefix, replace(name, attempt=AttemptId(1)))

    with patch.object(tests.simulation.sink, "transactional_id", without_attempt):
        yield


@contextmanager
def _healed_from_the_latest() -> Iterator[None]:
    def latest_itself(latest: Any, bases: Any, earlier: Any) -> Any:
        return latest

    with (
        patch.object(twopc.driver.lost_transactions, "restored_from", latest_itself),
        patch.object(coordinator.restore_plan, "restored_from", latest_itself),
    ):
        yield


@contextmanager
def _healed_blindly() -> Iterator[None]:
    """Commit what is open behind a lost one, and write all of it again."""

    def plan_all(latest: Any, fates: Any, earlier: Any, gone: Any) -> Any:
        losers, blind = set(), {}
        for item in latest.committables:
            if fates[item.name] is not Fate.COMMITTED:
                losers.add(item.subtask)
            blind[item.name] = Fate.ABORTED if item.subtask in losers else Fate.COMMITTED
        return plan(latest, blind, earlier, gone)

    def settle_each(client: Any, items: Any, confirmed: Any, seconds: float) -> Any:
        return [settle(client, item, confirmed=item.name in confirmed, budget_seconds=seconds) for item in items]

    with (
        patch.object(twopc.driver.lost_transactions, "plan", plan_all),
        patch.object(tests.simulation.sink, "settle_all", settle_each),
    ):
        yield


BREAKS = {
    "stream_breaks": 0.2,
    "kill_every_ms": 0,
    "kill_all_every_ms": 0,
    "second_coordinator_every_ms": 0,
    "fault_phase_ms": 5_000,
}
LATE = {"end_txn_late": 0.3, "broker_away_every_ms": 0, "fault_phase_ms": 5_000}
POWER = {"power_fails": True, "kill_all_every_ms": 500, "fault_phase_ms": 2_500}
KILLS = {"kill_every_ms": 500, "fault_phase_ms": 5_000}

EXPIRING = {
    "transaction_timeout_ms": 1_000,
    "snapshot_refused": 0.3,
    "kill_all_every_ms": 1_500,
    "fault_phase_ms": 5_000,
}

LONG_LIVED = {"kill_delay_ms": 20_000, "fault_phase_ms": 3_000, "crash_at_point": 0.01, "broker_away_every_ms": 0}

MUTANTS = (
    Mutant("a trigger is taken whatever its id", _around(SubtaskState, "on", _any_trigger), {"duplicates": 0.2}),
    Mutant("a completion commits its own checkpoint only", _around(SubtaskState, "on", _only_exactly)),
    Mutant("an aborted checkpoint's transaction is aborted", _around(Subtask, "_on", _abort_with_checkpoint)),
    Mutant(
        "closing aborts what is pre-committed",
        _around(Outputs, "abort", _abort_at_close),
        {"aimed_at": CrashPoint.DRIVER_BEFORE_SETTLE, "aimed_pauses": True, **LONG_LIVED},
    ),
    Mutant("ids are initialised before settling", instead(twopc.driver.preparation, "recovery", _sweep_first)),
    Mutant("a slot is used again when pre-committed", _around(SlotPool, "pre_committed", _free_at_pre_commit)),
    Mutant("a slot is used again when committed", _reused_at_once, LATE),
    Mutant("a doubtful producer is used again", _around(SlotPool, "settled", _never_doubtful), LATE),
    Mutant("notified before the completion record", _around(RunningAttempt, "decide", _tell_before_storing)),
    Mutant(
        "no attempt check",
        instead(Core, "_refused", lambda core, event, out: False),
        {"kill_every_ms": 1_500, "kill_delay_ms": 20_000, "network_delay_ms": 5, "fault_phase_ms": 5_000},
    ),
    Mutant(
        "a snapshot carries its own committable only",
        instead(
            SubtaskState,
            "committables",
            property(lambda state: state._pending[-1].committables if state._pending else ()),
        ),
    ),
    Mutant("an older checkpoint is restored", instead(coordinator.jobs, "plan_restore", _older_checkpoint)),
    Mutant("positions are not restored", _around(twopc.driver.recovery.Planner, "plan", _from_the_start)),
    Mutant("each driver looks anew where to start", _around(twopc.driver.recovery.Planner, "plan", _planned_anew)),
    Mutant("state is not restored", instead(tests.simulation.subtask, "restore_state", _without_state)),
    Mutant("pre-committed without a flush", instead(TransactionalWriter, "_flush", lambda *ignored: None)),
    Mutant("nothing lingering is aborted", _no_sweeps, KILLS),
    Mutant("ids are the same in every attempt", _same_ids_in_every_attempt, {"pause_at_start": 0.2}),
    Mutant("positions are read when the snapshot is stored", _around(Subtask, "_snapshot_maker", _late_positions)),
    Mutant(
        "acknowledged before the snapshot is stored",
        _around(SnapshotPipeline, "_put", _ack_before_storing),
    ),
    Mutant("committed is said before it is", _around(CommitQueue, "_commit", _say_committed_first), KILLS),
    Mutant("one acknowledgement completes", instead(PendingCheckpoint, "whole", property(_one_acknowledgement))),
    Mutant("what an absent subtask missed is not repeated", _nothing_repeated, BREAKS),
    Mutant(
        "an error code decides",
        instead(twopc.kafka.transactions.resume, "_turn", _lost_by_error_code(twopc.kafka.transactions.resume._turn)),
        {"broker_reply_lost": 0.1, "end_txn_late": 0.3},
    ),
    Mutant("what was not stored counts as stored", _around(JobShell, "_store", _stored_anyway)),
    Mutant("a file is not synced before it gets its name", instead(SimDisk, "sync", lambda disk, file: None), POWER),
    Mutant("a folder is not synced", instead(SimDisk, "sync_folder", lambda disk, path: None), POWER),
    Mutant("a damaged ledger is read as it stands", _damage_unnoticed, {"bit_rot_every_ms": 200}),
    Mutant(
        "deadlines follow the wall clock",
        instead(tests.simulation.coordinator, "SimClock", _WallClock),
        {"clock_jumps_every_ms": 300},
    ),
    Mutant(
        "a healed subtask is restored from the latest checkpoint", _healed_from_the_latest, timeouts=True, seeds=600
    ),
    Mutant("a loss is healed although a part was committed", _healed_blindly, EXPIRING, 1_000, timeouts=True),
)
