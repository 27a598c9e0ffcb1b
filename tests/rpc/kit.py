"""Subtasks that speak gRPC, and no data plane behind them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import TypeVar

from tests.coordinator.kit import snapshot
from twopc import events
from twopc.config import RunSettings
from twopc.protocol.attempts import StartedAttempt
from twopc.protocol.checkpoints import LATEST
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex
from twopc.protocol.messages import Ack, Committed, Complete, FencedOff, Finish, ToSubtask, Trigger, Welcome
from twopc.protocol.requests import StartAttempt
from twopc.rpc.job_client import JobClient
from twopc.rpc.subtask_link import SubtaskLink
from twopc.rpc.tls import TlsFiles

E = TypeVar("E", bound=events.JobEvent)

JOB = "flights"
SETTINGS = RunSettings(parallelism=2, checkpoint_interval_ms=20, checkpoint_timeout_ms=20_000)
PATIENCE_SECONDS = 120.0


def eventually(holds: Callable[[], bool], what: str) -> None:
    """Wait until it holds; fail after a bounded time."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline, f"it never came true: {what}"
        time.sleep(0.005)


def start_attempt(
    client: JobClient, job: str, settings: RunSettings, restore_from: str = LATEST, *, restart: bool = False
) -> StartedAttempt:
    """Start the next attempt, as a driver does."""
    checkpoints = settings.checkpoint_settings()
    return client.ask(job, StartAttempt(settings.parallelism, checkpoints, restore_from, restart=restart))


class ScriptedSubtask:
    """Acknowledges and commits all that it is told to, on a thread of its own, until Finish or FencedOff.

    `is_global`: what it pre-commits is for a global committer.
    """

    def __init__(
        self,
        address: str,
        attempt: AttemptId,
        subtask: int,
        token: str | None = None,
        tls: TlsFiles | None = None,
        transactions: tuple[str, ...] = (),
    ) -> None:
        self.heard: list[ToSubtask] = []
        self.link = SubtaskLink(address, job=JOB, attempt=attempt, subtask=SubtaskIndex(subtask), token=token, tls=tls)
        self.answer: Callable[[ToSubtask], None] = self._answer
        self.is_global = False
        self._subtask = subtask
        self._transactions = transactions
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ended.is_set():
            for message in self.link.receive(timeout=0.01):
                self.heard.append(message)
                if not isinstance(message, Welcome):
                    self.answer(message)

    def _answer(self, message: ToSubtask) -> None:
        match message:
            case Trigger(number):
                self.acknowledge(number)
            case Complete(number):
                self.link.send(Committed(number))
            case Finish() | FencedOff():
                self._ended.set()
            case _:
                pass

    def acknowledge(self, number: CheckpointId) -> None:
        names = (f"t{number}-{self._subtask}", *self._transactions)
        self.link.send(Ack(number, snapshot(self._subtask, *names, checkpoint_id=number, is_global=self.is_global)))

    @property
    def ended(self) -> bool:
        return self._ended.is_set()

    def completed(self) -> int:
        """The newest checkpoint that it knows to be completed."""
        return max((message.checkpoint_id for message in self.heard if isinstance(message, Complete)), default=0)

    def close(self) -> None:
        self._ended.set()
        self._thread.join()
        self.link.close()


class Watcher:
    """Collects a job's events while it is entered."""

    def __init__(self, client: JobClient, job: str = JOB) -> None:
        self.events: list[events.CoordinatorEvent] = []
        self._watch = client.watch(job)
        self._client = client
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def _follow(self) -> None:
        for event in self._watch:
            self.events.append(event)

    def __enter__(self) -> Watcher:
        self._thread.start()
        eventually(lambda: bool(self.events), "the watcher is told the status")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.stop_watching()
        self._thread.join()

    def told(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]
