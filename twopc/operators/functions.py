"""The functions that users give to operators: what kind they are, and how a person would point at them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from twopc.errors import ConfigurationError

Function = Callable[..., Any]


def is_coroutine_function(function: Function) -> bool:
    """Whether a call returns an awaitable; an object may be the function."""
    called = type(function).__call__ if callable(function) else None
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)


def is_asynchronous(function: Function) -> bool:
    """Whether what a call returns needs an event loop."""
    return is_coroutine_function(function) or inspect.isasyncgenfunction(function)


def check_callable(operator: str, function: Any) -> None:
    """Refuse what is no function."""
    if not callable(function):
        raise ConfigurationError(f"{operator} needs a function, not {type(function).__name__}")


def check_plain(operator: object, function: Function) -> None:
    """Refuse a function whose result an event loop would have to wait for."""
    if is_asynchronous(function):
        raise ConfigurationError(
            f"{operator} can't run a coroutine function: give that to map_async or map_async_records, and this a plain "
            "one"
        )


def function_name(function: Function) -> str:
    """Return how a person would point at this function: its name; for a lambda, its file and line too."""
    if isinstance(function, partial):
        return f"partial of {function_name(function.func)}"
    name = getattr(function, "__qualname__", type(function).__qualname__)
    code = getattr(function, "__code__", None)
    if name.endswith("<lambda>") and code is not None:
        return f"lambda at {Path(code.co_filename).name}:{code.co_firstlineno}"
    return str(name).replace("<locals>.", "")
