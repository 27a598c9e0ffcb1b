"""Records that went wrong while the job went on: what the coordinator tells those who watch."""

from __future__ import annotations

from tests.coordinator.kit import Scene
from twopc import events
from twopc.protocol.messages import Progress
from twopc.protocol.record_errors import RecordErrorKind

FIRST = RecordErrorKind("orders", "map(priced)", "KeyError", "record orders[0]@7 ...")
SECOND = RecordErrorKind("orders", "map(priced)", "ValueError", "record orders[0]@9 ...")


def report(*errors: RecordErrorKind) -> Progress:
    return Progress(1, 1, None, None, new_record_errors=errors)


def test_the_first_error_of_each_kind_is_told_once_in_an_attempt_whichever_subtask_had_it() -> None:
    scene = Scene()
    scene.run()
    scene.say(0, report(FIRST))
    scene.say(1, report(RecordErrorKind("orders", "map(priced)", "KeyError", "another"), SECOND))
    scene.say(0, report(FIRST, SECOND))
    assert [(each.subtask, each.error) for each in scene.told(events.RecordFailed)] == [(0, FIRST), (1, SECOND)]


def test_another_attempt_tells_of_its_own_first_ones() -> None:
    scene = Scene()
    scene.run()
    scene.say(0, report(FIRST))
    scene.run()
    scene.say(0, report(FIRST))
    assert [(each.attempt, each.error) for each in scene.told(events.RecordFailed)] == [(1, FIRST), (2, FIRST)]
