"""Options that several commands share are written once; a command receives the value that they make together."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

T = TypeVar("T")


def shared_options(**factories: Callable[..., Any]) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Replace each of these parameters of a command by the options of its factory.

    Those options follow the command's own on the command line. The command receives what the factory makes of them.
    """
    options = {name: inspect.signature(factory, eval_str=True).parameters for name, factory in factories.items()}

    def fold(command: Callable[..., T]) -> Callable[..., T]:
        own = inspect.signature(command, eval_str=True)

        @wraps(command)
        def run(**given: Any) -> T:
            values = {
                name: factory(**{option: given.pop(option) for option in options[name]})
                for name, factory in factories.items()
            }
            return command(**given, **values)

        kept = [parameter for name, parameter in own.parameters.items() if name not in factories]
        folded = [parameter for parameters in options.values() for parameter in parameters.values()]
        keywords = [option.replace(kind=inspect.Parameter.KEYWORD_ONLY) for option in (*kept, *folded)]
        run.__signature__ = own.replace(parameters=keywords)  # type: ignore[attr-defined]
        return run

    return fold
