"""A step of a job: an operator as a value, which says what it promises and opens what runs.

A new operator is a subclass, in a file of its own, and the method of `Stream` that adds it: nothing else in the project
knows its name. What a step does not say of itself holds on the safe side: it is taken to change keys and values, to
make several records of one, to see event time, and to keep nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from twopc.errors import ConfigurationError
from twopc.serde import Serde

if TYPE_CHECKING:
    from twopc.operators.instance import Instance, OperatorContext


class InputPort(NamedTuple):
    """One way into an operator. One that takes no records is a table that the operator looks into."""

    name: str
    takes_records: bool = True


RECORDS = InputPort("records")


@dataclass(frozen=True, slots=True)
class Step(ABC):
    """An operator as a frozen value: data that can be validated, shown, and copied to every subtask.

    `str` of it is the call that made it, as a person would write it.
    """

    ports: ClassVar[tuple[InputPort, ...]] = (RECORDS,)
    """Where its records come from; a job names an input for each."""

    ports_together = False
    """Whether its instance works on one batch of all its ports, in the order of their records (`Instance.together`)."""

    keeps_key = False
    """Whether what comes of a record has its key, whatever the function does: only then may state by key follow."""

    keeps_values = False
    """Whether the records that come out have the values that they came with."""

    one_to_one = False
    """Whether a row behind it still stands for a whole input record of which nothing else is known yet.

    Only then may a batch be cut behind it.
    """

    by_key = False
    """Whether all records of a key must come to it under one partition number."""

    keys_apart = False
    """Whether what it makes of a record depends on nothing but that and those of its key before it, and has its place.

    Then records of different keys may come to it in any order. This is asked of those that work by key.
    """

    sees_time = True
    """Whether what it does depends on the order of event time; this is asked of those that work by key."""

    earlier_ports: ClassVar[tuple[str, ...]] = ()
    """The ports whose record is the earlier one of two of one time."""

    feeds_broadcast = False
    """Whether it may stand before a broadcast table: every subtask runs it there, and again at each start."""

    @property
    @abstractmethod
    def operator(self) -> str:
        """The name of the method of `Stream` that made this step."""

    @property
    def states(self) -> Mapping[str, Serde]:
        """The serde of each of its states by key, by name."""
        return {}

    @property
    def state_name(self) -> str | None:
        """The name that was given to what it keeps, which is its operator id; None for none."""
        return None

    @property
    def outputs(self) -> tuple[str, ...]:
        """The side outputs whose records must go somewhere."""
        return ()

    @abstractmethod
    def open(self, context: OperatorContext) -> Instance:
        """Open it on a subtask, with what its functions need; raise UserCodeError where they can't begin."""


def check_whole(what: str, number: Any, least: int) -> None:
    """Raise ConfigurationError for what is no whole number from `least` on."""
    if type(number) is not int or number < least:
        raise ConfigurationError(f"{what} must be a whole number from {least} on, not {number!r}")
