"""What a subtask measures of its operators comes with some reports only."""

from __future__ import annotations

from tests.coordinator.kit import JOB, Scene
from twopc.protocol.measures import Measures, OperatorCount
from twopc.protocol.messages import Progress


def test_what_a_subtask_measured_last_holds_until_it_measures_again() -> None:
    scene = Scene()
    scene.run()
    measures = Measures(read=(OperatorCount("orders", 7),))
    scene.say(0, Progress(7, 7, None, None, measures=measures))
    scene.say(0, Progress(9, 9, None, None))
    progress = scene.jobs.describe(JOB).subtasks[0].progress
    assert progress is not None
    assert (progress.records_in, progress.measures) == (9, measures)


def test_another_attempt_measures_anew() -> None:
    scene = Scene()
    scene.run()
    scene.say(0, Progress(7, 7, None, None, measures=Measures(read=(OperatorCount("orders", 7),))))
    scene.run()
    scene.say(0, Progress(1, 1, None, None))
    progress = scene.jobs.describe(JOB).subtasks[0].progress
    assert progress is not None
    assert progress.measures is None
