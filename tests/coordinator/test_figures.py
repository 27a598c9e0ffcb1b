"""A report of a subtask has some of its figures only."""

from __future__ import annotations

from tests.coordinator.kit import JOB, Scene
from twopc.protocol.figures import RECORDS_IN, RECORDS_OUT
from twopc.protocol.messages import Progress


def test_each_figure_of_a_subtask_holds_until_it_tells_it_again() -> None:
    scene = Scene()
    scene.run()
    first, again = RECORDS_IN.by_operator({"orders": 7}), RECORDS_IN.by_operator({"orders": 9})
    out = RECORDS_OUT.by_operator({"priced": 7})
    scene.say(0, Progress(7, 7, None, None, figures=dict([first, out])))
    scene.say(0, Progress(9, 9, None, None, figures=dict([again])))
    scene.say(0, Progress(9, 9, None, None))
    progress = scene.jobs.describe(JOB).subtasks[0].progress
    assert progress is not None
    assert (progress.records_in, progress.figures) == (9, dict([again, out]))


def test_another_attempt_counts_anew() -> None:
    scene = Scene()
    scene.run()
    scene.say(0, Progress(7, 7, None, None, figures=dict([RECORDS_IN.by_operator({"orders": 7})])))
    scene.run()
    scene.say(0, Progress(1, 1, None, None))
    progress = scene.jobs.describe(JOB).subtasks[0].progress
    assert progress is not None
    assert progress.figures is None
