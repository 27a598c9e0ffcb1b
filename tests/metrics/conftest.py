from __future__ import annotations

from pathlib import Path

import pytest

from tests.metrics.prometheus import NotToBeHad, program


@pytest.fixture(scope="session")
def promtool() -> Path:
    return _program("promtool")


@pytest.fixture(scope="session")
def prometheus() -> Path:
    return _program("prometheus")


def _program(name: str) -> Path:
    try:
        return program(name)
    except NotToBeHad as error:
        pytest.skip(str(error))
