"""How a call gets its answer from the coordinator's one thread, or its error as a status.

Invariant: a peer is told our errors by their message, made fit to leave; of any other it learns nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import NoReturn, TypeVar

import grpc

from coordinator.jobs import Jobs
from coordinator.limits import Limits
from coordinator.loop import Loop
from twopc.errors import TwoPhaseCommitError, Unavailable
from twopc.rpc.status import code_of
from twopc.rpc.wording import outward

log = logging.getLogger(__name__)

T = TypeVar("T")


def abort_with(context: grpc.ServicerContext, error: Exception) -> NoReturn:
    """End a call with an error: ours by its message, any other without its details, which are nobody's business."""
    if isinstance(error, TwoPhaseCommitError):
        context.abort(code_of(error), outward(str(error)))
    log.error("a call failed with an error that should not happen", exc_info=error)
    context.abort(grpc.StatusCode.INTERNAL, "the coordinator failed; its log says why")
    raise AssertionError("abort raises")


class Asking:
    """Puts questions to the coordinator's one thread, and waits for the answers as long as it is worth it."""

    def __init__(self, loop: Loop, limits: Limits) -> None:
        self._loop = loop
        self._limits = limits

    def ask(self, action: Callable[[Jobs], T], context: grpc.ServicerContext) -> T:
        """The same as `ask_within`, for a call that may have a deadline of its own."""
        return self.ask_within(context.time_remaining(), action)

    def ask_within(self, seconds: float | None, action: Callable[[Jobs], T]) -> T:
        """Return what the action does, or raise what it raises; Unavailable if that takes too long."""
        patience = self._limits.answer_seconds
        patience = patience if seconds is None else min(patience, seconds)
        try:
            return self._loop.ask(action).result(patience)
        except TimeoutError:
            raise Unavailable("the coordinator is too busy to answer: ask again") from None
