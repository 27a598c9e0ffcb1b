"""Registries for tests: one in memory for each test, and a real one for all that ask for it."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from tests.registry.kit import opened
from twopc.testing import MemoryRegistry
from twopc.testing.local_registry import LocalRegistry


@pytest.fixture(autouse=True)
def _extra(request: pytest.FixtureRequest) -> None:
    """Without the extra there is nothing to test, but where everything must be there: with the real ones."""
    real = any(request.node.get_closest_marker(each) for each in ("broker", "drill"))
    if find_spec("authlib") is None and not real:
        pytest.skip("the packages of twopc-streams[registry] are not installed: make setup installs them")


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    with opened:
        yield


@pytest.fixture
def memory_registry() -> Iterator[MemoryRegistry]:
    with MemoryRegistry() as registry:
        yield registry


@pytest.fixture(scope="session")
def real_registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalRegistry]:
    with LocalRegistry(tmp_path_factory.mktemp("registry") / "registry.log") as registry:
        yield registry
