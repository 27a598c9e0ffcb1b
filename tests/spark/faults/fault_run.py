"""Plays faults on a running job one after the other, and tells how long each held it up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tests.spark.faults.cluster_job import ClusterJob
from tests.spark.faults.kinds import Fault


@dataclass(frozen=True, slots=True)
class Recovery:
    """The cost of one fault.

    `first_output_seconds`: from the blow to the first committed output of what was given after it. `silent_seconds`:
    the longest time without new committed output, until it was undone, or the next came besides. `attempts`: new ones.
    """

    fault: str
    first_output_seconds: float
    silent_seconds: float
    attempts: int


def play(job: ClusterJob, faults: Iterable[Fault]) -> Iterator[Recovery]:
    """Yield what each fault cost, in the order of their blows, when the job goes on as before."""
    for fault in faults:
        job.await_rest()
        before = job.attempt()
        with fault.happens(job) as struck:
            first = job.await_output(struck)
            job.await_rest()
            cost = _cost(job, fault, first, struck, before)
            meanwhile = list(play(job, fault.meanwhile))
        job.await_rest()
        yield cost if meanwhile else _cost(job, fault, first, struck, before)
        yield from meanwhile


def _cost(job: ClusterJob, fault: Fault, first: float, struck: float, before: int) -> Recovery:
    return Recovery(fault.name, first, job.watch.longest_silence(struck), job.attempt() - before)


def line(recovery: Recovery) -> str:
    """One row of the table."""
    first, silent = recovery.first_output_seconds, recovery.silent_seconds
    return f"{recovery.fault:<50} {first:>14.1f} s {silent:>13.1f} s {recovery.attempts:>8}"


def table(recoveries: Iterable[Recovery]) -> str:
    """The recoveries as lines for people."""
    head = f"{'fault':<50} {'first new output':>16} {'longest silence':>15} {'attempts':>8}"
    return "\n".join((head, *map(line, recoveries)))
