"""The effects of a driver's scripts: what they wait for, and what they say on their way. Pure.

The driver's decisions are scripts: generators that yield one effect, get its answer or its error, and go on. A script
does nothing by itself, so the same answers make the same effects: `twopc.driver.shell` carries them out in production,
the simulation in its world, a test by hand.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from twopc import events
from twopc.driver.edge import Edge

UNTIMED = 0
"""The time of an event before it is told."""

A = TypeVar("A")
T = TypeVar("T")


class Effect(Generic[A]):
    """Something that a script waits for."""

    __slots__ = ()


class Action(Effect[A], ABC):
    """Something to be done at the edge. `on_calling_thread`: the subtasks live on the thread that runs the shell."""

    __slots__ = ()
    on_calling_thread: ClassVar[bool] = False

    @abstractmethod
    def carry_out(self, edge: Edge) -> A:
        """Do it; nothing but the edge calls this."""


Script = Generator[Any, Any, T]


def do(effect: Effect[A]) -> Script[A]:
    """Return the effect's answer, typed; raise its error."""
    answer: A = yield effect
    return answer


@dataclass(frozen=True, slots=True)
class Begun:
    """An attempt of this run has begun: from now on, the coordinator's events are of it."""


@dataclass(frozen=True, slots=True)
class Tell:
    """An event of the driver's own, in the stream of the coordinator's; its time is when it is told."""

    event: events.DriverEvent


@dataclass(frozen=True, slots=True)
class Log:
    """A line of the log; `error` brings its traceback, `never_hidden` has it written whatever the level."""

    level: int
    message: str
    error: BaseException | None = None
    never_hidden: bool = False


Notice = Begun | Tell | Log
"""The effects that a script has on its way: no answer is waited for."""
