"""The figures of a subtask come with some reports only."""

from __future__ import annotations

from tests.coordinator.kit import JOB, Scene
from twopc.protocol.figures import RECORDS_IN
from twopc.protocol.messages import Progress


def test_the_figures_that_a_subtask_told_last_hold_until_it_tells_them_again() -> None:
    scene = Scene()
    scene.run()
    figures = dict([RECORDS_IN.by_operator({"orders": 7})])
    scene.say(0, Progress(7, 7, None, None, figures=figures))
    scene.say(0, Progress(9, 9, None, None))
    progress = scene.jobs.describe(JOB).subtasks[0].progress
    assert progress is not None
    assert (progress.records_in, progress.figures) == (9, figures)


def test_another_attempt_counts_anew() -> None:
    scene = Scene()
    scene.run()
    scene.say(0, Progress(7, 7, None, None, figures=dict([RECORDS_IN.by_operator({"orders": 7})])))
    scene.run()
    scene.say(0, Progress(1, 1, None, None))
    progress = scene.jobs.describe(JOB).subtasks[0].progress
    assert progress is not None
    assert progress.figures is None
