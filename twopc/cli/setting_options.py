"""The settings of a run as options of a command, made from what `twopc.config` declares of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Annotated, Any

import typer

from twopc.cli.completion import HOSTS, INLINE, MASTERS, Offer, one_of, restore_names
from twopc.config import RunSettings
from twopc.setting import NONE, Setting, settings_of

_TYPES = {"int": int, "bool": bool}
_OFFERS: Mapping[str, tuple[str | Offer, ...]] = {"host": (*HOSTS, INLINE), "master": MASTERS}


def run_options(*names: str, leave_out: tuple[str, ...] = ()) -> Callable[..., dict[str, Any]]:
    """Return a factory for `shared_options`, of these settings or of all that have options: what was given, by name."""
    declared = {name: each for name, each in settings_of(RunSettings).items() if each.flags}
    chosen = {name: declared[name] for name in names} or declared
    kinds = {each.name: str(each.type) for each in fields(RunSettings)}
    parameters = [
        _option(each, kinds[name].removesuffix(" | None"))
        for name, each in chosen.items()
        if each.name not in leave_out
    ]

    def given(**options: Any) -> dict[str, Any]:
        return options

    given.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return given


def _option(setting: Setting, kind: str) -> inspect.Parameter:
    # Text for a duration, and for several values, as the environment has them.
    value = _TYPES.get(kind, str) if not setting.is_duration else str
    option = typer.Option(
        *setting.flags,
        envvar=setting.variable,
        help=setting.help,
        metavar=setting.metavar or None,
        show_default=False if value is bool or setting.default == NONE else setting.default,
        autocompletion=_completion(setting),
    )
    return inspect.Parameter(
        setting.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[value | None, option]
    )


def _completion(setting: Setting) -> Any:
    if setting.name == "restore_from":
        return restore_names
    offers = _OFFERS.get(setting.name, setting.choices)
    return one_of(*offers) if offers else None
