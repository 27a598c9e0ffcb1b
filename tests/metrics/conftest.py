from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.debian import NotToBeHad, unpacked


@pytest.fixture(scope="session")
def promtool() -> Path:
    return _program("promtool")


@pytest.fixture(scope="session")
def prometheus() -> Path:
    return _program("prometheus")


def _program(name: str) -> Path:
    """Return where `prometheus` or `promtool` is."""
    if installed := shutil.which(name):
        return Path(installed)
    try:
        return unpacked("prometheus") / "usr" / "bin" / name
    except NotToBeHad as error:
        pytest.skip(str(error))
