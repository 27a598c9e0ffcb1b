"""The end of an attempt: its committer closed, the coordinator told, no subtask alive, nothing lingering. Pure."""

from __future__ import annotations

import logging

from twopc.context import JobContext
from twopc.driver.actions import AbortLingering, CloseCommitter, EndAttempt, Kill, RemoveWork
from twopc.driver.control import EndOf, Pause
from twopc.driver.effects import Log, Script, do
from twopc.driver.supervision import SWEEP_RETRY_SECONDS, Sweeps
from twopc.errors import TwoPhaseCommitError, Unavailable


def closing_committer(script: Script[None]) -> Script[None]:
    """Play a script that opens the attempt's committer, and close that."""
    ended: Exception | KeyboardInterrupt | None = None
    try:
        yield from script
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - raised again below
        ended = error
    yield CloseCommitter()
    if ended is not None:
        raise ended


def close(context: JobContext, reason: str) -> Script[None]:
    """Tell the coordinator, and leave no subtask."""
    not_told: TwoPhaseCommitError | None = None
    try:
        yield from end(context, reason)
    except TwoPhaseCommitError as error:
        not_told = error
    yield Kill()
    yield RemoveWork(context.attempt)
    if not_told is not None:
        raise not_told


def end(context: JobContext, reason: str) -> Script[None]:
    """Tell the coordinator, if it can be reached: the next attempt would end this one just as well."""
    try:
        yield EndAttempt(context, reason)
    except Unavailable as error:
        yield Log(logging.INFO, f"the coordinator was not told that attempt {context.attempt} is over: {error}")


def last_sweep() -> Script[None]:
    """Sweep once more when the job has finished: nobody may come by for a long time."""
    yield EndOf(AbortLingering)
    sweeps = Sweeps()
    while True:
        try:
            answer: list[str] | Exception = yield from do(AbortLingering())
        except Exception as error:  # noqa: BLE001 - no outcome of a sweep ends a job that is well
            answer = error
        yield from sweeps.answered(answer, 0.0)
        if not isinstance(answer, Unavailable):
            return
        yield Pause(SWEEP_RETRY_SECONDS)
