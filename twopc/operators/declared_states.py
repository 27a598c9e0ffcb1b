"""The states of a processor are those that its class declares, each an object of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from twopc.errors import ConfigurationError
from twopc.processor import Processor, State


def refuse_other_states(processor: Processor) -> None:
    """Raise ConfigurationError, naming it, for a state that no operator would bind to the key in hand."""
    kind = type(processor)
    declared = kind.declared_states()
    named = kind.__qualname__.replace("<locals>.", "")
    for name, state in declared.items():
        if state.name != name:
            other = f"is also {state.name!r}" if state.name else "was put there when the class was made already"
            raise ConfigurationError(
                f"state {name!r} of {named} {other}: each state is an object of its own, declared in its class: "
                f"{name} = {type(state).__name__}(...)"
            )
    for name in vars(processor):
        if name in declared:
            raise ConfigurationError(
                f"{named} declares a state {name!r}, and its object has another attribute of that name, which would be "
                "lost: give one of them another name"
            )
    of_class: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        of_class |= vars(base)
    others = {name: value for name, value in (of_class | vars(processor)).items() if name not in declared}
    for name, value in others.items():
        if (found := _state_in(value)) is not None:
            raise ConfigurationError(
                f"{name!r} of {named} is or holds a {type(found).__name__} that is not declared: a state stands in the "
                f"class by itself, not in __init__ or a collection: {name} = {type(found).__name__}(...)"
            )


def _state_in(value: Any) -> State | None:
    if isinstance(value, State):
        return value
    if not isinstance(value, list | tuple | set | frozenset | Mapping):
        return None
    held: Iterable[Any] = value.values() if isinstance(value, Mapping) else value
    return next((state for state in held if isinstance(state, State)), None)
