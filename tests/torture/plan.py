"""The plan of one run, drawn from its seed alone, so that the seed replays it.

Which cluster: eight runs in a row share one, because three brokers take their time to start.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from tests.crash_cells.cells import OF_OTHER_SINKS, RECOVERY, THREE_DEEP
from tests.timed_faults import BROKER_ACTIONS, Target, TimedFault
from twopc.faults.armed_faults import ArmedFault, ProcessAction
from twopc.faults.crash_table import CrashPoint, CrashSite

RUNS_PER_CLUSTER = 8

_POINTS = tuple(
    point for point in CrashPoint if point.where is not CrashSite.BETWEEN and point not in {*RECOVERY, *OF_OTHER_SINKS}
)
_ACTS = (ProcessAction.KILL, ProcessAction.KILL, ProcessAction.STOP, ProcessAction.TERM, ProcessAction.PAUSE)
_PAUSES_MS = (50, 400, 4_000)


@dataclass(frozen=True, slots=True)
class Cluster:
    """The number of brokers, and the version of the transaction protocol that they speak."""

    brokers: int
    transaction_version: int

    def __str__(self) -> str:
        return f"{self.brokers} broker(s), transaction.version {self.transaction_version}"


CLUSTERS = (Cluster(1, 2), Cluster(1, 1), Cluster(3, 2), Cluster(3, 1))


@dataclass(frozen=True, slots=True)
class Plan:
    """The faults of one run. What is stopped is woken after `sleep_seconds`."""

    seed: int
    cluster: Cluster
    arms: tuple[ArmedFault, ...]
    broker_faults: tuple[TimedFault, ...]
    sleep_seconds: float

    def __str__(self) -> str:
        faults = [*map(_sentence, self.arms), *map(str, self.broker_faults)]
        return "; ".join([str(self.cluster), *faults, f"woken after {self.sleep_seconds} s"])


def draw(seed: int) -> Plan:
    """Return the plan of a seed."""
    rng = random.Random(f"torture-{seed}")
    cluster = CLUSTERS[seed // RUNS_PER_CLUSTER % len(CLUSTERS)]
    arms = [_arm(rng, rng.choice(_POINTS), number) for number in range(rng.randint(1, 3))]
    arms += [_arm(rng, rng.choice(RECOVERY), len(arms) + number) for number in range(rng.randint(0, 2))]
    if rng.random() < 0.25:
        arms += [
            ArmedFault(point, rng.choice((ProcessAction.KILL, ProcessAction.STOP)), name="-deep")
            for point in THREE_DEEP
        ]
    broker_faults = [_broker_fault(rng, cluster) for _ in range(rng.choice((0, 0, 1, 1, 2)))]
    return Plan(seed, cluster, tuple(arms), tuple(broker_faults), rng.choice((0.2, 1.0, 3.0)))


def _arm(rng: random.Random, point: CrashPoint, number: int) -> ArmedFault:
    act = rng.choice(_ACTS)
    return ArmedFault(
        point,
        act,
        checkpoint=0 if point in RECOVERY or point is CrashPoint.COORDINATOR_IN_PRUNE else rng.randint(1, 8),
        subtask=rng.choice((None, 0, 1)) if point.where is CrashSite.SUBTASK else None,
        pause_ms=rng.choice(_PAUSES_MS) if act is ProcessAction.PAUSE else 0,
        name=f"-{number}",
    )


def _broker_fault(rng: random.Random, cluster: Cluster) -> TimedFault:
    at = round(rng.uniform(0.5, 6.0), 1)
    node = rng.randrange(cluster.brokers)
    return TimedFault(at, rng.choice(BROKER_ACTIONS), Target.BROKER, rng.choice((0.1, 1.0, 3.0)), node)


def _sentence(arm: ArmedFault) -> str:
    who = "" if arm.subtask is None else f" of subtask {arm.subtask}"
    when = f" from checkpoint {arm.checkpoint} on" if arm.checkpoint else ""
    return f"{arm.act.value} at {arm.point.code} {arm.point.name}{who}{when}"
