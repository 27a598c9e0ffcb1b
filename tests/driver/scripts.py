"""Plays the driver's scripts by hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

from tests.plain_jobs import in_a_row
from twopc.driver.effects import Action, Script
from twopc.errors import CheckpointCorrupted, TwoPhaseCommitError
from twopc.faults.crash_table import CrashPoint
from twopc.graph import JobDefinition
from twopc.protocol.facts import SplitPosition
from twopc.protocol.ids import AttemptId, CheckpointId

T = TypeVar("T")


@dataclass
class FakeEdge:
    """Acts on what a test gives it."""

    definition: JobDefinition
    source: Any
    sink: Any
    coordinator: Any
    host: Any = None
    running: Any = None
    committer: Any = None

    def reached(self, point: CrashPoint, checkpoint: CheckpointId) -> None:
        pass

    def all_damage(self, error: CheckpointCorrupted, checkpoint_id: CheckpointId | None) -> TwoPhaseCommitError:
        return error

    def kept_positions(self) -> tuple[SplitPosition, ...]:
        return ()

    def remove_work(self, attempt: AttemptId) -> None:
        pass


def edge_of(client: Any, source: Any, sink: Any) -> FakeEdge:
    return FakeEdge(in_a_row("job", source, (), sink), source, sink, client, committer=sink)


def carried_out(script: Script[T], edge: FakeEdge) -> T:
    """Play a script of actions alone to its end; what it logs and tells goes nowhere."""
    send: Any = script.send
    given: Any = None
    while True:
        try:
            wanted = send(given)
        except StopIteration as end:
            result: T = end.value
            return result
        send, given = script.send, None
        if isinstance(wanted, Action):
            try:
                given = wanted.carry_out(edge)
            except TwoPhaseCommitError as error:
                send, given = script.throw, error
