"""Drills: a whole job in real processes, faults as data, and a judgement from outside.

    drill = Drill("127.0.0.1:9092", folder, job="drill-1")
    drill.load()
    with drill.driver(Arm(CrashPoint.BEFORE_COMMIT, checkpoint=4, subtask=0)) as driver:
        driver.finish()
    assert judge(drill) == []

`Drill` is one job on topics and folders of its own; `Arm` says where a process kills, stops or ends itself; `judge`
compares everything that the job left with what its input says it must be.
"""

from twopc.testing.drill.arm import Act, Arm
from twopc.testing.drill.drill import Drill
from twopc.testing.drill.judge import judge
from twopc.testing.drill.process import Started

__all__ = ["Act", "Arm", "Drill", "Started", "judge"]
