"""The settings of a run as options of a command, made from what `twopc.config` declares of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, Any, NamedTuple

import typer

from twopc.cli.completion import HOSTS, INLINE, MASTERS, Offer, one_of, restore_names
from twopc.config import RunSettings
from twopc.setting import NONE, Setting, settings_of

_OFFERS: Mapping[str, tuple[str | Offer, ...]] = {"host": (*HOSTS, INLINE), "master": MASTERS}


class Meaning(NamedTuple):
    """What a setting is to one command: its help, the values that are offered, and its default in words."""

    help: str
    offers: tuple[str | Offer, ...] = ()
    default: str = ""


def run_options(
    *names: str, leave_out: tuple[str, ...] = (), meanings: Mapping[str, Meaning] | None = None
) -> Callable[..., dict[str, Any]]:
    """Return a factory for `shared_options`, of these settings or of all that have options: what was given, by name.

    `meanings` are those that a command has of its own, by the field.
    """
    declared = _declared()
    chosen = {name: declared[name] for name in names} or declared
    parameters = [
        _parameter(setting, (meanings or {}).get(name))
        for name, setting in chosen.items()
        if setting.name not in leave_out
    ]

    def given(**options: Any) -> dict[str, Any]:
        return options

    given.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return given


def option_of(name: str, meaning: Meaning | None = None) -> Any:
    """Return the option of one setting, for a command that is no run: what follows `Annotated[TYPE, ...`.

    Where no `meaning` is given, it is that of a run.
    """
    return _option(_declared()[name], meaning)


@cache
def _declared() -> dict[str, Setting]:
    return {name: setting for name, setting in settings_of(RunSettings).items() if setting.flags}


def _parameter(setting: Setting, meaning: Meaning | None) -> inspect.Parameter:
    return inspect.Parameter(
        setting.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[setting.type | None, _option(setting, meaning)],
    )


def _option(setting: Setting, meaning: Meaning | None) -> Any:
    default = setting.default if meaning is None else meaning.default or setting.default
    return typer.Option(
        *setting.flags,
        envvar=setting.variable,
        help=setting.help if meaning is None else meaning.help,
        metavar=setting.metavar or None,
        show_default=False if setting.type is bool or default == NONE else default,
        autocompletion=_completion(setting, meaning),
    )


def _completion(setting: Setting, meaning: Meaning | None) -> Any:
    if setting.name == "restore_from":
        return restore_names
    offers = _OFFERS.get(setting.name, setting.choices) if meaning is None else meaning.offers
    return one_of(*offers) if offers else None
