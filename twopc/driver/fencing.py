"""Fencing by the brokers, where a job's ledger can't: another run may have a ledger of its own. Pure."""

from __future__ import annotations

from twopc.context import JobContext
from twopc.errors import Fenced, TwoPhaseCommitError, Unavailable
from twopc.protocol.attempts import Traces


def refuse_successor(traces: Traces, context: JobContext) -> None:
    """Raise Fenced if another run has taken over from `context.attempt`."""
    if (successor := traces.newest) > context.attempt:
        raise Fenced(
            f"another run of job {context.job!r} has taken over from attempt {context.attempt} of this one, as attempt "
            f"{successor}, with another checkpoint folder: this run ends, and nothing is lost. A job can have one run "
            "at a time; see where else it is started (another host, or a relative --checkpoint-dir elsewhere)"
        )


def explained(error: TwoPhaseCommitError, traces: Traces, context: JobContext) -> TwoPhaseCommitError:
    """Tell another run, which is final, from all else, and from the broker, which fences a producer silent for long."""
    try:
        refuse_successor(traces, context)
    except Fenced as fenced:
        return fenced
    if not isinstance(error, Fenced):
        return error
    return Unavailable(f"{error}. No later attempt is known: a transaction outlived its time-out?")
