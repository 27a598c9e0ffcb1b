"""The compiled parts, for tests that are about one of them: skipped where it can't be had."""

from __future__ import annotations

from typing import Any

import pytest

from twopc.compiled import NotCompiled, compiled


def compiled_part(name: str) -> Any:
    """Return a compiled module (`twopc.compiled`); skip the test, or the module of tests, where there is none."""
    try:
        return compiled(name)
    except NotCompiled as reason:
        pytest.skip(str(reason), allow_module_level=True)
