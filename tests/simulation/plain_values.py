"""Frozen values made the plain way while a simulation runs, which makes hundreds a run: guarding them costs a tenth.

A frozen dataclass sets each field through `object.__setattr__`, past its own guard. Here the guard is taken away, and
the constructor is what the same dataclass would have if it were not frozen: same fields, same defaults, same values.
That nobody writes to a frozen value is what the type checker proves.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, Field, field, fields, is_dataclass, make_dataclass
from functools import cache
from typing import Any

PACKAGES = ("twopc.", "coordinator.")
_GUARDS = ("__init__", "__setattr__", "__delattr__")


@contextmanager
def made_plainly() -> Iterator[None]:
    """Take the guards away, of all classes that are imported by now."""
    guarded = [(owner, {name: vars(owner)[name] for name in _GUARDS}) for owner in set(_frozen_classes())]
    try:
        for owner, _ in guarded:
            _give(owner, _plain(owner))
        yield
    finally:
        for owner, methods in guarded:
            _give(owner, methods)


def _give(owner: type, methods: Mapping[str, Any]) -> None:
    for name, method in methods.items():
        setattr(owner, name, method)


def _plain(owner: type) -> Mapping[str, Any]:
    return dict(zip(_GUARDS, (plain_constructor(owner), object.__setattr__, object.__delattr__), strict=True))


def _frozen_classes() -> Iterator[type]:
    for name, module in list(sys.modules.items()):
        if not name.startswith(PACKAGES):
            continue
        for each in vars(module).values():
            if isinstance(each, type) and each.__module__ == name and _is_frozen(each):
                yield each


def _is_frozen(owner: Any) -> bool:
    """Whether it is a dataclass of its own, with the constructor that frozen ones are given."""
    return "__dataclass_params__" in vars(owner) and owner.__dataclass_params__.frozen and is_dataclass(owner)


@cache
def plain_constructor(owner: Any) -> Callable[..., None]:
    """The constructor that this dataclass would have if it were not frozen."""
    spec = [(each.name, each.type, _as_declared(each)) for each in fields(owner)]
    after = getattr(owner, "__post_init__", None)
    namespace = {} if after is None else {"__post_init__": after}
    made = make_dataclass(owner.__name__, spec, namespace=namespace, slots=True)
    constructor: Callable[..., None] = vars(made)["__init__"]
    return constructor


def _as_declared(declared: Field[Any]) -> Any:
    how: dict[str, Any] = {"init": declared.init, "kw_only": declared.kw_only}
    if declared.default is not MISSING:
        how["default"] = declared.default
    if declared.default_factory is not MISSING:
        how["default_factory"] = declared.default_factory
    return field(**how)
