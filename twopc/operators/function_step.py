"""Steps that are a function of the user's, and those of them that are one call over a batch."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from twopc.column import Over
from twopc.operators.functions import Function, check_callable, check_plain, function_name
from twopc.operators.instance import Instance, OperatorContext
from twopc.operators.result import Result, Work
from twopc.operators.step import Step
from twopc.record import Batch


@dataclass(frozen=True, slots=True)
class FunctionStep(Step):
    """A step with a function; the name of its class is that of the method of `Stream`."""

    function: Function

    def __post_init__(self) -> None:
        check_callable(self.operator, self.function)
        self._check_kind()

    def _check_kind(self) -> None:
        check_plain(self, self.function)

    @property
    def operator(self) -> str:
        return "".join("_" + char.lower() if char.isupper() else char for char in type(self).__name__).lstrip("_")

    def __str__(self) -> str:
        return f"{self.operator}({function_name(self.function)})"


@dataclass(frozen=True, slots=True)
class ColumnStep(FunctionStep):
    """A step that is one function over a batch, given that of the user's, and keeps nothing."""

    @staticmethod
    @abstractmethod
    def over_batch(function: Function, batch: Batch, over: Over, /) -> Result:
        """Work on a batch, up to where `over` stops."""

    def open(self, context: OperatorContext) -> Instance:
        return ColumnInstance(partial(self.over_batch, self.called))

    @property
    def called(self) -> Function:
        """The function as it is called for each element."""
        return self.function


class ColumnInstance(Instance):
    """One function over a batch."""

    def __init__(self, work: Work) -> None:
        self._work = work

    @property
    def ports(self) -> Sequence[Work]:
        return (self._work,)
