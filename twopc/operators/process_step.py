"""The step of process; `process` runs it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from twopc.errors import ConfigurationError
from twopc.operators.declared_states import refuse_other_states
from twopc.operators.instance import OperatorContext
from twopc.operators.step import Step
from twopc.processor import ListState, Processor
from twopc.protocol.ids import checked_name
from twopc.serde import Bytes, Json, Serde
from twopc.state.layout import ELEMENTS, EXPIRIES, STREAM_TIME, TIMERS

if TYPE_CHECKING:
    from twopc.operators.process import ProcessOperator


@dataclass(frozen=True, slots=True)
class Process(Step):
    """record, and the states of its key -> records"""

    processor: Processor
    name: str
    keeps_key: bool = False
    operator = "process"
    by_key = True
    checks_keys = True
    """Whether `keeps_key` is somebody's word, and so is checked for each record."""

    def __post_init__(self) -> None:
        given: Any = self.processor
        if not isinstance(given, Processor):
            hint = f": write {given.__name__}()" if isinstance(given, type) else ""
            raise ConfigurationError(f"process needs a Processor, not {given!r}{hint}")
        for function in (self.processor.process, self.processor.on_timer):
            if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
                raise ConfigurationError(f"{self} can't run a coroutine function: give {function.__name__} a plain one")
        refuse_other_states(self.processor)
        checked_name("the name of a process", self.name)
        if not isinstance(outputs := type(self.processor).outputs, tuple) or not all(map(_is_output, outputs)):
            raise ConfigurationError(
                f"outputs of {self} is a tuple of names, each of letters, digits, '_' and '-', not {outputs!r}"
            )

    @property
    def states(self) -> Mapping[str, Serde]:
        """The declared states, and those of the operator itself."""
        declared = type(self.processor).declared_states()
        own: dict[str, Serde] = {STREAM_TIME: Json()}
        if self.has_timers:
            own[TIMERS] = Bytes()
        if any(state.ttl_ms for state in declared.values()):
            own[EXPIRIES] = Bytes()
        if any(isinstance(state, ListState) for state in declared.values()):
            own[ELEMENTS] = Json()
        return own | {name: state.stored_serde for name, state in declared.items()}

    @property
    def has_timers(self) -> bool:
        """Whether the processor says what a timer does."""
        return type(self.processor).on_timer is not Processor.on_timer

    @property
    def state_name(self) -> str:
        return self.name

    @property
    def outputs(self) -> tuple[str, ...]:
        return type(self.processor).outputs

    def open(self, context: OperatorContext) -> ProcessOperator:
        from twopc.operators.process import ProcessOperator

        operator = ProcessOperator(self, context)
        operator.open()
        return operator

    def __str__(self) -> str:
        return f"process({type(self.processor).__qualname__.replace('<locals>.', '')}, name={self.name!r})"


def _is_output(name: Any) -> bool:
    return isinstance(name, str) and bool(re.fullmatch(r"[A-Za-z0-9_-]{1,128}", name))
