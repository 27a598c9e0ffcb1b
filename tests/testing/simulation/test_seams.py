"""What a simulation replaces in production modules is all that it has to."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

import coordinator
import twopc.driver
import twopc.files
import twopc.kafka
import twopc.runtime
from twopc import crashpoints
from twopc.testing.simulation.seams import CRASHING


@pytest.mark.parametrize(
    "package", [coordinator, twopc.driver, twopc.kafka, twopc.runtime], ids=lambda each: each.__name__
)
def test_every_module_that_says_which_place_it_has_come_to_says_so_to_the_world_of_the_run(package: object) -> None:
    names = [each.name for each in pkgutil.iter_modules(package.__path__, f"{package.__name__}.")]  # type: ignore[attr-defined]
    modules = [importlib.import_module(name) for name in names if not name.endswith("__main__")]
    saying = [module for module in modules if getattr(module, "reached", None) is crashpoints.reached]
    assert [module.__name__ for module in saying if module not in CRASHING] == []
