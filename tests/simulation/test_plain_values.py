"""Values that a simulation makes without their guard are the same values."""

from __future__ import annotations

import inspect
from dataclasses import FrozenInstanceError, dataclass, field

import pytest

from tests.simulation.plain_values import made_plainly, plain_constructor
from twopc import events
from twopc.protocol.facts import CheckpointMetadata, StateHandle


@dataclass(frozen=True, slots=True)
class Sample:
    """One of each kind of field."""

    first: int
    second: str = "two"
    third: list[int] = field(default_factory=list)
    hidden: bytes = field(default=b"h", init=False)
    derived: int = field(init=False)
    last: int = field(default=9, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "derived", self.first * 2)


def test_the_plain_constructor_sets_what_the_guarded_one_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sample, "__setattr__", object.__setattr__)
    plain = Sample.__new__(Sample)
    plain_constructor(Sample)(plain, 1, third=[3], last=4)
    assert plain == Sample(1, third=[3], last=4)
    assert (plain.hidden, plain.derived, plain.second) == (b"h", 2, "two")


@pytest.mark.parametrize("owner", [Sample, events.CheckpointCompleted, CheckpointMetadata])
def test_it_takes_what_the_guarded_one_takes(owner: type) -> None:
    assert str(inspect.signature(plain_constructor(owner))) == str(inspect.signature(vars(owner)["__init__"]))


def test_the_guard_is_back_afterwards() -> None:
    guarded = StateHandle.__init__
    with made_plainly():
        handle = StateHandle("chk-1/subtask-0", "0" * 64, 1, 2)
        assert StateHandle.__init__ is not guarded
    assert StateHandle.__init__ is guarded
    assert handle == StateHandle("chk-1/subtask-0", "0" * 64, 1, 2)
    with pytest.raises(FrozenInstanceError):
        handle.path = ""  # type: ignore[misc]
