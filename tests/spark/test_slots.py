"""What a stage is said to wait for, by what Spark's scheduler knows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from twopc.spark.slots import SlotWatch

OURS, THEIRS = "twopc-job-1", "a query"


class Pool:
    """A pool of the scheduler, with stages or pools in it."""

    def __init__(self, *members: Any) -> None:
        self._members = members

    def runningTasks(self) -> int:  # noqa: N802
        return sum(member.runningTasks() for member in self._members)

    def schedulableQueue(self) -> Any:  # noqa: N802
        return SimpleNamespace(toArray=lambda: self._members)

    def getClass(self) -> Any:  # noqa: N802
        return SimpleNamespace(getSimpleName=lambda: "Pool")


class Stage(Pool):
    """A stage that runs so many tasks of a job group."""

    def __init__(self, group: str, running: int) -> None:
        super().__init__()
        self._group = group
        self._running = running

    def runningTasks(self) -> int:  # noqa: N802
        return self._running

    def getClass(self) -> Any:  # noqa: N802
        return SimpleNamespace(getSimpleName=lambda: "TaskSetManager")

    def taskSet(self) -> Any:  # noqa: N802
        properties = SimpleNamespace(getProperty={"spark.jobGroup.id": self._group}.get)
        return SimpleNamespace(properties=lambda: properties)


@dataclass
class Spark:
    """As much of a SparkContext as a watch asks of one."""

    slots: int
    stages: Sequence[Pool] = ()
    executors: int = 2
    master: str = "spark://10.0.0.5:7077"
    _jsc: Any = field(init=False)

    def __post_init__(self) -> None:
        scheduler = SimpleNamespace(rootPool=lambda: Pool(*self.stages))
        profiles = SimpleNamespace(defaultResourceProfile=lambda: None)
        context = SimpleNamespace(
            getExecutorIds=self._executor_ids,
            taskScheduler=lambda: scheduler,
            resourceProfileManager=lambda: profiles,
            maxNumConcurrentTasks=lambda _profile: self.slots,
        )
        self._jsc = SimpleNamespace(sc=lambda: context)

    def _executor_ids(self) -> Any:
        assert not self.master.startswith("local"), "Spark warns of each such question to a local scheduler"
        return SimpleNamespace(size=lambda: self.executors)


def shortage(spark: Spark, needed: int = 3) -> str | None:
    session: Any = SimpleNamespace(sparkContext=spark)
    return SlotWatch(session).shortage(OURS, needed, 100.0)


def test_slots_that_are_not_there_are_missed() -> None:
    assert (shortage(Spark(slots=2)) or "").startswith(
        "waiting for 3 task slots, Spark has 2 (2 executors under spark:"
    )


def test_slots_that_others_have_are_missed_too() -> None:
    said = shortage(Spark(4, [Stage(THEIRS, 3), Stage(OURS, 0)])) or ""
    assert said.startswith("waiting for 3 task slots: Spark has 4, but other tasks of this application have 3 of them")


def test_what_others_have_in_a_pool_of_their_own_is_seen() -> None:
    assert "have 2 of them" in (shortage(Spark(4, [Pool(Stage(THEIRS, 2)), Stage(OURS, 0)])) or "")


def test_others_that_leave_room_enough_are_not_spoken_of() -> None:
    assert shortage(Spark(4, [Stage(THEIRS, 1)])) is None


def test_a_stage_that_runs_lacks_nothing_however_many_slots_it_has_taken() -> None:
    assert shortage(Spark(3, [Stage(OURS, 3)])) is None


def test_a_stage_that_runs_in_a_pool_lacks_nothing() -> None:
    assert shortage(Spark(4, [Pool(Stage(THEIRS, 1), Stage(OURS, 3))])) is None


def test_a_local_scheduler_is_not_asked_for_executors() -> None:
    assert shortage(Spark(4, [Stage(OURS, 3)], master="local[4]")) is None
    assert "other tasks of this application have 3" in (shortage(Spark(4, [Stage(THEIRS, 3)], master="local[4]")) or "")
