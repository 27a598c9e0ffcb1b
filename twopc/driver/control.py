"""What a driver's scripts ask of the machine that plays them, and how the wait for an answer is limited. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from twopc.driver.effects import Action, Effect, Notice, Script
from twopc.driver.supervision import Supervision

T = TypeVar("T")


class Late(Exception):
    """What was waited for has not come in its time; it is waited for no longer, and still does no harm."""


@dataclass(frozen=True, slots=True)
class Now(Effect[float]):
    """The monotonic time of this step, in seconds."""


@dataclass(frozen=True, slots=True)
class StopWanted(Effect[bool]):
    """Whether a stop has been asked for."""


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
class Limited:
    """An effect whose answer is not waited for beyond a time, or after a stop."""

    effect: Effect[Any]
    until: float | None = None
    stoppable: bool = False


def unless_stopped(script: Script[T]) -> Script[T]:
    """Raise StoppedEarly in place of the answer that is being waited for, as soon as a stop is asked for.

    It may never come: brokers and coordinators may be away. What is still done after a stop must do no harm.
    """
    return _limited(script, lambda effect: Limited(effect, stoppable=True))


def within(seconds: float, script: Script[T]) -> Script[T]:
    """Raise Late in place of an answer that has not come by then."""
    until: float = (yield Now()) + seconds
    return (yield from _limited(script, lambda effect: Limited(effect, until)))


def _limited(script: Script[T], limit: Callable[[Effect[Any]], Limited]) -> Script[T]:
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
