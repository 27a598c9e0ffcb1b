from __future__ import annotations

from tests.runtime.kit import ScriptedReader
from twopc.protocol.ids import CheckpointId
from twopc.runtime.inputs import Inputs


def polled(inputs: Inputs, times: int) -> list[tuple[str, list[bytes]] | None]:
    found = [inputs.poll(0.0, 10) for _ in range(times)]
    return [None if turn is None else (turn.source, turn.parts[0][1].values) for turn in found]


def test_sources_have_their_turn_one_after_the_other() -> None:
    inputs = Inputs({"web": ScriptedReader([[b"1"], [b"2"]], True), "app": ScriptedReader([[b"a"], [b"b"]], True)})
    assert polled(inputs, 5) == [("web", [b"1"]), ("app", [b"a"]), ("web", [b"2"]), ("app", [b"b"]), None]


def test_a_source_without_records_keeps_none_waiting() -> None:
    inputs = Inputs({"silent": ScriptedReader([], True), "app": ScriptedReader([[b"a"], [b"b"]], True)})
    assert polled(inputs, 2) == [("app", [b"a"]), ("app", [b"b"])]


def test_the_end_has_come_when_every_source_is_at_its_own() -> None:
    inputs = Inputs({"web": ScriptedReader([[b"1"]], False), "app": ScriptedReader([[b"a"]], False)})
    assert polled(inputs, 1) == [("web", [b"1"])]
    assert not inputs.at_end()
    assert polled(inputs, 1) == [("app", [b"a"])]
    assert (inputs.at_end(), inputs.finished()) == (True, True)


class Endless(ScriptedReader):
    """A reader of input without an end."""

    def bound(self) -> bool:
        return False


def test_of_a_source_that_has_no_end_nothing_more_is_read_after_a_stop() -> None:
    inputs = Inputs({"web": Endless([[b"1"], [b"2"]], True), "app": ScriptedReader([[b"a"]], True)})
    inputs.bound()
    assert polled(inputs, 2) == [("app", [b"a"]), None]
    assert (inputs.at_end(), inputs.finished()) == (True, False)


def test_each_position_names_its_source_and_each_source_is_told_its_own() -> None:
    web, app = ScriptedReader([[b"1"]], True), ScriptedReader([[b"a"]], True)
    inputs = Inputs({"web": web, "app": app})
    polled(inputs, 2)
    positions = inputs.positions(lambda _: ())
    assert [held.source for held in positions] == ["web", "app"]
    inputs.commit_positions(CheckpointId(1), positions)
    assert [len(reader.committed) for reader in (web, app)] == [1, 1]


def test_only_the_sources_up_to_a_stage_are_bounded() -> None:
    inputs = Inputs({"web": ScriptedReader([], True), "by-user": ScriptedReader([], True)}, {"by-user": 1})
    assert (inputs.last_stage, inputs.stages_at_end()) == (1, 0)
    inputs.bound()
    assert (inputs.stages_at_end(), inputs.at_end()) == (1, False)
    inputs.bound(1)
    assert (inputs.stages_at_end(), inputs.at_end()) == (2, True)


def test_a_stage_has_not_ended_before_those_that_write_what_it_reads() -> None:
    inputs = Inputs({"web": ScriptedReader([], True), "by-user": ScriptedReader([])}, {"by-user": 1})
    assert inputs.stages_at_end() == 0
