"""A setting of a run, declared once: its default, and what people are told of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any, Final

_DECLARED = "declared"

_TYPES: Final[Mapping[str, type[int | bool]]] = {"int": int, "bool": bool}
"""By the annotations of the fields, which are text."""

NONE = "none"
"""What people are told of a default that is nothing."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What people are told of a setting.

    `name` is what they call it: that of its field, without the unit. `help` is one line. `default` is text where the
    value itself says too little. `flags` are its options on the command line, none where it has none; `metavar` stands
    for its value there. `choices` are all that it may be; what `is_secret` nobody is shown. `type` is its value's where
    that is a number, a yes or no; anything else is text where people give it.
    """

    name: str
    help: str
    type: type[int | bool | str]
    default: str = ""
    flags: tuple[str, ...] = ()
    metavar: str = ""
    choices: tuple[str, ...] = ()
    is_duration: bool = False
    is_secret: bool = False

    @property
    def variable(self) -> str:
        """The variable of the environment that has it."""
        return f"TWOPC_{self.name.upper()}"


def setting(
    value: Any,
    help: str,  # noqa: A002  the word of command lines
    *,
    default: str = "",
    option: str | None = "",
    short: str = "",
    metavar: str = "",
    choices: tuple[str, ...] = (),
    secret: bool = False,
) -> Any:
    """Declare a field of the settings: its default value, and what is told of it.

    `option` is its option where that is not its name, None where it has none; what is `secret` no repr shows.
    """
    metadata = {
        "help": help,
        "default": default,
        "option": option,
        "short": short,
        "metavar": metavar,
        "choices": choices,
    }
    return field(default=value, repr=not secret, metadata={_DECLARED: metadata})


def settings_of(kind: Any) -> dict[str, Setting]:
    """Return the settings that a dataclass declares, by the names of their fields."""
    return {each.name: _setting(each) for each in fields(kind) if _DECLARED in each.metadata}


def _setting(declared: Field[Any]) -> Setting:
    metadata = dict(declared.metadata[_DECLARED])
    name = declared.name.removesuffix("_ms")
    option, short = metadata.pop("option"), metadata.pop("short")
    flags = () if option is None else (option or f"--{name.replace('_', '-')}", *((short,) if short else ()))
    metadata["default"] = metadata["default"] or _shown(declared.default)
    is_duration = name != declared.name
    kind = str if is_duration else _TYPES.get(str(declared.type).removesuffix(" | None"), str)
    return Setting(name, type=kind, flags=flags, is_duration=is_duration, is_secret=not declared.repr, **metadata)


def _shown(value: Any) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case int() | str() if value != "":
            return str(value)
    return NONE
