"""Options that several commands share, written down once: a command takes the value that they make together."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

T = TypeVar("T")


def taking(**made: Callable[..., Any]) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Give a command, for each of these parameters, the options of the function that makes its value of them.

    On the command line they stand after the command's own.
    """
    options = {name: inspect.signature(make, eval_str=True).parameters for name, make in made.items()}

    def fold(command: Callable[..., T]) -> Callable[..., T]:
        own = inspect.signature(command, eval_str=True)

        @wraps(command)
        def run(**told: Any) -> T:
            values = {name: made[name](**{each: told.pop(each) for each in options[name]}) for name in made}
            return command(**told, **values)

        kept = [parameter for name, parameter in own.parameters.items() if name not in made]
        folded = [parameter for parameters in options.values() for parameter in parameters.values()]
        everything = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in (*kept, *folded)]
        run.__signature__ = own.replace(parameters=everything)  # type: ignore[attr-defined]
        return run

    return fold
