"""The requests of a driver's scripts to the machine that plays them, and the limits of a wait for an answer. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from twopc.driver.effects import Action, Effect, Notice, Script
from twopc.driver.supervision import Supervision

T = TypeVar("T")


class AnswerTimeout(Exception):
    """The wait ended without its answer, which may still come, and then does no harm."""


@dataclass(frozen=True, slots=True)
class Now(Effect[float]):
    """The monotonic time of this step, in seconds."""


@dataclass(frozen=True, slots=True)
class StopWanted(Effect[bool]):
    """Asks whether a stop has been requested."""


@dataclass(frozen=True, slots=True)
class Pause(Effect[None]):
    """Go on after this time, or as soon as a stop is asked for."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Supervise(Effect[None]):
    """Go on when the job has finished; raises what ends the attempt otherwise."""

    supervision: Supervision


@dataclass(frozen=True, slots=True)
class EndOf(Effect[None]):
    """Go on when no action of this kind is under way beside the script."""

    kind: type[Action[Any]]


@dataclass(frozen=True, slots=True)
class WithDeadline:
    """An effect whose answer is not waited for beyond a time, or after a stop."""

    effect: Effect[Any]
    until: float | None = None
    stoppable: bool = False


def unless_stopped(script: Script[T]) -> Script[T]:
    """Raise StoppedEarly in place of the answer that is being waited for, as soon as a stop is asked for.

    It may never come: brokers and coordinators may be away. What is still done after a stop must do no harm.
    """
    return _limited(script, lambda effect: WithDeadline(effect, stoppable=True))


def within(seconds: float, script: Script[T]) -> Script[T]:
    """Raise AnswerTimeout in place of an answer that has not come by then."""
    until: float = (yield Now()) + seconds
    return (yield from _limited(script, lambda effect: WithDeadline(effect, until)))


def _limited(script: Script[T], limit: Callable[[Effect[Any]], WithDeadline]) -> Script[T]:
    send: Callable[[Any], Any] = script.send
    given: Any = None
    while True:
        try:
            wanted = send(given)
        except StopIteration as end:
            result: T = end.value
            return result
        try:
            given = yield wanted if isinstance(wanted, Notice) else limit(wanted)
            send = script.send
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the script gets it
            given, send = error, script.throw
