"""The notes of a driver on its attempt's input: told to whoever asks for the job, while that attempt runs."""

from __future__ import annotations

import pytest

from tests.coordinator.kit import JOB, Scene
from twopc.cli.job_report import headline
from twopc.errors import Fenced
from twopc.protocol.ids import AttemptId
from twopc.protocol.requests import NoteInput

HIDDEN = "in[0] can be read up to offset 100: what stands behind (50 offsets) is hidden by transaction t"


def test_the_latest_notes_stand_in_the_description_until_another_attempt_begins() -> None:
    scene = Scene()
    scene.run()
    scene.jobs.request(JOB, NoteInput(scene.attempt, ("something else",)))
    scene.jobs.request(JOB, NoteInput(scene.attempt, (HIDDEN,)))
    assert headline(scene.jobs.describe(JOB)).splitlines()[1:] == [f"input: {HIDDEN}"]
    scene.start(2)
    assert scene.jobs.describe(JOB).input_notes == ()


def test_nobody_but_the_driver_of_the_attempt_notes_anything() -> None:
    scene = Scene()
    scene.run()
    with pytest.raises(Fenced):
        scene.jobs.request(JOB, NoteInput(AttemptId(scene.attempt + 1), (HIDDEN,)))
