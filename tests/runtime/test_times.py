"""How long the phases of a checkpoint took, as a subtask tells it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from tests.runtime.kit import RecordingSink, Stage, trigger
from twopc.clock import ManualClock
from twopc.protocol.facts import Committable
from twopc.protocol.messages import (
    Ack,
)
from twopc.runtime.state import SubtaskStore
from twopc.sink import PreCommit


class SlowSink(RecordingSink):
    """Takes 7 ms to pre-commit."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__()
        self._clock = clock

    def pre_commit(self, txn: list[bytes], request: PreCommit) -> Committable | None:
        self._clock.advance(7)
        return super().pre_commit(txn, request)


def test_an_acknowledgement_tells_how_long_each_phase_took(make: Callable[..., Stage]) -> None:
    clock = ManualClock()
    stage = make([[b"a"]], sink=SlowSink(clock), clock=clock)
    store: Any = SubtaskStore

    def slow(method: Any, milliseconds: int) -> Any:
        def run(*arguments: Any) -> Any:
            clock.advance(milliseconds)
            return method(*arguments)

        return run

    trigger(stage, 1)
    with (
        patch.object(store, "take", slow(store.take, 5)),
        patch.object(store, "write", slow(store.write, 20)),
        patch.object(store, "put", slow(store.put, 30)),
    ):
        stage.steps(1)
    (ack,) = stage.sent(Ack)
    told = (ack.pre_commit_ms, ack.pause_ms, ack.write_ms, ack.store_ms)
    assert [round(each, 3) for each in told] == [7, 12, 20, 50]
