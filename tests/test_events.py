"""What a user of `on_event` relies on: a class for each event, and one form in JSON."""

from __future__ import annotations

import json
from typing import get_args

import pytest

from tests.job_events import event
from twopc import events
from twopc.protocol.codec import Newer, from_json, to_json

ALL = get_args(events.Event)


@pytest.mark.parametrize("kind", ALL)
def test_every_event_comes_back_from_its_json_as_the_same_class(kind: type[events.JobEvent]) -> None:
    told = event(kind)
    body = json.loads(json.dumps(to_json(told, events.Event)))
    assert next(iter(body)) == "event"
    assert body["event"] == told.name
    assert from_json(events.Event, body) == told


def test_an_event_has_the_fields_of_its_class_and_no_others() -> None:
    told = event(events.CheckpointConfirmed, job="orders", attempt=3, checkpoint_id=41, duration_ms=12.0)
    body = to_json(told, events.Event)
    assert body == {
        "event": "checkpoint-confirmed",
        "job": "orders",
        "attempt": 3,
        "time_ms": 0,
        "checkpoint_id": 41,
        "duration_ms": 12.0,
    }
    with pytest.raises(Newer, match="pause_ms, which is unknown"):
        from_json(events.Event, body | {"pause_ms": 1.0})


def test_every_class_of_event_is_in_the_union() -> None:
    defined = {
        each
        for each in vars(events).values()
        if isinstance(each, type) and issubclass(each, events.JobEvent) and not each.__subclasses__()
    }
    assert defined == set(ALL)


def test_names_in_json_are_the_classes_in_small_letters_with_hyphens() -> None:
    names = {event(kind).name for kind in ALL}
    assert len(names) == len(ALL)
    assert {"checkpoint-completed", "subtask-attached", "transaction-aborted", "end-of-input"} <= names
