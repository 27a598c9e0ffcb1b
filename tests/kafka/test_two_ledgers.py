"""Two runs of one job, each with a ledger of its own, one broker, every order of their requests.

The rules are production's: the claim, the fencing of what is earlier, what a ledger refuses, what a group's positions
say. Around them is as much of a run as it takes to write records, complete checkpoints and be started again and again.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

import twopc.kafka.transactions.claim
from coordinator.requests import refuse_unknown_past
from tests.simulation.broker_model import BrokerModel
from tests.simulation.transaction_tables import Code
from twopc.driver.restore_checks import refuse_moved_on
from twopc.errors import ConfigurationError, Fenced, TwoPhaseCommitError
from twopc.kafka.clients.described_transaction import BrokerState
from twopc.kafka.positions.witness import WitnessMetadata, witness_metadata
from twopc.kafka.topic_partition import TopicPartition
from twopc.kafka.transactions.claim import claim, refuse_successor
from twopc.kafka.transactions.lingering_transactions import fence_earlier, traces
from twopc.kafka.transactions.naming import SlotName, transactional_id
from twopc.protocol.attempt_facts import AttemptStarted
from twopc.protocol.attempts import CheckpointSettings
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex
from twopc.protocol.ledger_state import LedgerState
from twopc.protocol.planned_starts import NOTHING_WITNESSED, Witnessed
from twopc.protocol.requests import StartAttempt

PREFIX, RECORDS, A_CHECKPOINT = "job", 12, 3
SETTINGS = CheckpointSettings(1_000, 60_000)
INPUT = TopicPartition("in", 0)
TURNS = 4_000
SEEDS = 300


class Over(Exception):
    """The play has ended."""


class Turns:
    """Lets one of several threads go on at a time, from one request to the next; who, is the dice's."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.over = False
        self._waiting: dict[str, threading.Semaphore] = {}
        self._parked = threading.Semaphore(0)

    def play(self, lives: dict[str, Callable[[], None]], has_ended: Callable[[], bool]) -> bool:
        """Play until it has ended; return False if it does not within a great many turns."""
        self._waiting = {name: threading.Semaphore(0) for name in lives}
        for name, live in lives.items():
            threading.Thread(target=self._live, args=(name, live), name=name, daemon=True).start()
        ended = False
        for _ in range(TURNS):
            ended = has_ended()
            if ended:
                break
            self._one(self.dice.choice(list(lives)))
        self.over = True
        for name in lives:
            self._one(name)
        return ended

    def take(self) -> None:
        """Wait for a turn."""
        self._parked.release()
        self._waiting[threading.current_thread().name].acquire()
        if self.over:
            raise Over

    def _live(self, name: str, live: Callable[[], None]) -> None:
        self._waiting[name].acquire()
        try:
            live()
        except Over:
            pass
        finally:
            self._parked.release()

    def _one(self, name: str) -> None:
        self._waiting[name].release()
        self._parked.acquire()


class Client:
    """A broker, each request to which is one turn."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self.model = BrokerModel(1, bumps=False, on_prepare=lambda held: self.model.finish(held.name, 0))

    def list_transactions(self) -> dict[str, BrokerState]:
        self._turns.take()
        return {name: held.state for name, held in self.model.coordinator.ids.items()}

    def init_producer_id(self, transactional_id: str, timeout_ms: int) -> int:
        return self.init(transactional_id)[1]

    def init(self, name: str) -> tuple[int, int]:
        self._turns.take()
        code, producer = self.model.coordinator.init_producer_id(name, 60_000, 0)
        assert code is Code.NONE
        return producer

    def write(self, name: str, producer: tuple[int, int], value: str) -> None:
        self._turns.take()
        for code in (
            self.model.coordinator.add_partition(name, producer, 0, 0),
            self.model.produce(name, producer, 0, value, version=10, now_ms=0),
        ):
            self._check(code)

    def pre_commit(self, name: str, producer: tuple[int, int], position: int, checkpoint: int, attempt: int) -> None:
        self._turns.take()
        held = {INPUT: (position, witness_metadata(CheckpointId(checkpoint), "", AttemptId(attempt)))}
        self._check(self.model.add_offsets(name, producer, 0))
        self._check(self.model.commit_offsets(name, producer, held, version=3, now_ms=0))

    def commit(self, name: str, producer: tuple[int, int]) -> bool:
        self._turns.take()
        code, _ = self.model.coordinator.end(name, producer, commit=True, version=3, now_ms=0)
        return code is Code.NONE

    def witnessed(self) -> Witnessed:
        self._turns.take()
        _, metadata = self.model.offsets.get(INPUT, (0, ""))
        found = WitnessMetadata.parse(metadata)
        return NOTHING_WITNESSED if found is None else Witnessed(found.checkpoint_id, found.attempt)

    @staticmethod
    def _check(code: Code) -> None:
        if code is not Code.NONE:
            raise Fenced(code.name)


@dataclass
class Pending:
    """A completed checkpoint whose output is not known to be committed."""

    name: str
    producer: tuple[int, int]
    position: int


class Run:
    """`while true; do twopc run ...; done` in one folder."""

    def __init__(self, client: Client, turns: Turns) -> None:
        self._client: Any = client
        self._turns = turns
        self.running = False
        self.refusals = 0
        self._current = 0
        self._completed = NOTHING_WITNESSED
        self._committed = 0
        self._accepted: Witnessed | None = None
        self._pending: Pending | None = None

    def loop(self) -> None:
        while True:
            try:
                self._start()
            except ConfigurationError:
                self.refusals += 1
            except TwoPhaseCommitError:
                self.refusals = 0
            self.running = False
            for _ in range(self._turns.dice.randrange(20)):
                self._turns.take()

    def _start(self) -> None:
        client = self._client
        left = traces(client, PREFIX)
        state = LedgerState(None if not self._current else _started(self._current))
        refuse_unknown_past(state, StartAttempt(1, SETTINGS, "latest", traces=left))
        attempt = AttemptId(max(self._current, left.newest) + 1)
        self._current = attempt
        self._refuse_moved_on()
        claim(client, PREFIX, 60_000, attempt)
        self._settle()
        fence_earlier(client, PREFIX, 60_000, attempt)
        self._accepted = self._refuse_moved_on()
        slots = [self._opened(attempt, number) for number in range(2)]
        self._write(slots)

    def _refuse_moved_on(self) -> Witnessed:
        accepted = None if self._completed.checkpoint else self._accepted
        witnessed: Witnessed = self._client.witnessed()
        refuse_moved_on("job", witnessed, self._completed, "here", accepted)
        return witnessed

    def _settle(self) -> None:
        """What was lost is written again, from where the checkpoint before stood."""
        pending, self._pending = self._pending, None
        if pending is not None and self._client.commit(pending.name, pending.producer):
            self._committed = pending.position

    def _opened(self, attempt: AttemptId, number: int) -> tuple[str, tuple[int, int]]:
        name = transactional_id(PREFIX, SlotName(attempt, SubtaskIndex(0), number))
        producer = self._client.init(name)
        refuse_successor(self._client, PREFIX, attempt)
        return name, producer

    def _write(self, slots: list[tuple[str, tuple[int, int]]]) -> None:
        for turn, first in enumerate(range(self._committed, RECORDS, A_CHECKPOINT)):
            name, producer = slots[turn % len(slots)]
            position = min(first + A_CHECKPOINT, RECORDS)
            for value in range(first, position):
                self._client.write(name, producer, str(value))
            checkpoint = self._completed.checkpoint + 1
            self._client.pre_commit(name, producer, position, checkpoint, self._current)
            self._completed = Witnessed(checkpoint, self._current)
            self._pending = Pending(name, producer, position)
            if not self._client.commit(name, producer):
                raise Fenced("the commit was refused")
            self._committed, self._pending = position, None
        self.running = True
        while True:
            self._turns.take()


def _started(attempt: int) -> AttemptStarted:
    return AttemptStarted(AttemptId(attempt), 1, SETTINGS, CheckpointId(0), 0)


def outcome(seed: int) -> str:
    """Play one seed; return what went wrong, nothing if nothing did."""
    turns = Turns(seed)
    client = Client(turns)
    one, two = Run(client, turns), Run(client, turns)

    def has_ended() -> bool:
        return any(mine.running and other.refusals > 2 for mine, other in ((one, two), (two, one)))

    ended = turns.play({"one": one.loop, "two": two.loop}, has_ended)
    read = client.model.logs[0].read(committed=True)
    if sorted(read, key=int) != [str(value) for value in range(RECORDS)] and (ended or len(read) > RECORDS):
        return f"seed {seed}: {read}"
    return "" if ended else f"seed {seed}: not one is running in the end"


def test_the_output_is_exact_and_one_runs_in_the_end_whatever_the_order_of_their_requests() -> None:
    assert [said for said in map(outcome, range(SEEDS)) if said] == []


@pytest.mark.parametrize("rule", ["claim", "refuse_successor", "fence_earlier", "refuse_moved_on"])
def test_without_any_one_of_the_rules_something_goes_wrong(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where = twopc.kafka.transactions.claim if rule == "refuse_successor" else None
    monkeypatch.setitem(globals(), rule, lambda *_: None)
    if where is not None:
        monkeypatch.setattr(where, rule, lambda *_: None)
    assert any(map(outcome, range(SEEDS)))
