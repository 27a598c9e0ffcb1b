"""A job that was made in a notebook or in the program that runs it: no file of its own defines it, so it is pickled.

Spark's cloudpickle takes functions of `__main__` by value, with the variables that they use, and those of modules by
name: the modules travel as text. What can't be pickled is named: the function, its line, and the variable.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, fields
from inspect import getclosurevars
from pathlib import Path
from types import FunctionType
from typing import Any

from pyspark import cloudpickle

from twopc.errors import ConfigurationError
from twopc.graph import JobDefinition
from twopc.loader.job_loader import users_modules
from twopc.loader.shipment import Shipment

_HOW_TO = "make it inside the function, or put the job into a file and run that with `twopc run FILE`"


@dataclass(frozen=True, slots=True)
class PickledJob:
    """A job as bytes, and as text the modules that its functions come from; `folder` is where the program runs."""

    job: str
    pickled: bytes = field(repr=False)
    shipment: Shipment
    folder: Path

    @classmethod
    def of(cls, definition: JobDefinition) -> PickledJob:
        """Pickle a job; raise ConfigurationError that names what can't travel."""
        try:
            pickled = _dumps(definition)
        except Exception as error:
            raise ConfigurationError(
                f"job {definition.name!r} can't be sent to Spark's workers: {_culprit(definition, error)}: {_HOW_TO}"
            ) from error
        return cls(definition.name, pickled, users_modules(_main_folder()), Path.cwd())

    def load(self) -> JobDefinition:
        """Return the job, in a process that may have none of its modules."""
        self.shipment.unpack()
        try:
            definition: JobDefinition = cloudpickle.loads(self.pickled)
        except Exception as error:
            raise ConfigurationError(
                f"job {self.job!r} can't be made where its subtasks run: {type(error).__name__}: {error}. Install "
                "there what it imports, or put the job into a file and run that with `twopc run FILE`"
            ) from error
        return definition


def _main_folder() -> Path:
    """Return the folder of the running program, or of a notebook: modules are imported from there."""
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    return Path(file).resolve().parent if file else Path.cwd()


def _culprit(definition: JobDefinition, error: Exception) -> str:
    for function in _functions(definition):
        for where, variable, value in _used(function, set()):
            if not _travels(value):
                return f"{where} uses {variable}, a {type(value).__module__}.{type(value).__qualname__}"
    for operator_id, end in definition.ends.items():
        if not _travels(end):
            return f"{operator_id} can't be pickled ({error})"
    return str(error)


def _functions(definition: JobDefinition) -> Iterator[FunctionType]:
    for step in definition.steps.values():
        for each in fields(step):
            if isinstance(value := getattr(step, each.name), FunctionType):
                yield value


def _used(function: FunctionType, seen: set[int]) -> Iterator[tuple[str, str, Any]]:
    """Yield what a function uses, its name and where; of the functions among it, what those use."""
    if id(function) in seen:
        return
    seen.add(id(function))
    code = function.__code__
    where = f"{function.__name__} ({Path(code.co_filename).name}:{code.co_firstlineno})"
    variables = getclosurevars(function)
    for name, value in {**variables.nonlocals, **variables.globals}.items():
        if isinstance(value, FunctionType):
            yield from _used(value, seen)
        yield where, name, value


def _travels(value: Any) -> bool:
    with suppress(Exception):
        return bool(_dumps(value))
    return False


def _dumps(value: Any) -> bytes:
    pickled: bytes = cloudpickle.dumps(value)  # type: ignore[no-untyped-call]
    return pickled
