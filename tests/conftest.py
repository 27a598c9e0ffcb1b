"""What all tests share: one real broker for the whole run, started when the first test asks for it, and fresh names.

Where a run is spread over several processes, each has a broker of its own, and a share of the ports.
"""

from __future__ import annotations

import gc
import itertools
import os
import uuid
from collections.abc import Callable, Generator, Iterator

import pytest
from hypothesis import HealthCheck, settings

from twopc.driver.discovery import FOLDER_VARIABLE
from twopc.testing import ports
from twopc.testing.broker import Broker
from twopc.testing.local_broker import LocalBroker

# How long an example takes says something of the machine, and nothing of the code.
settings.register_profile(
    "patient", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("patient")


def pytest_configure() -> None:
    """Give each of several processes ports that no other takes."""
    worker, workers = os.environ.get("PYTEST_XDIST_WORKER"), int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if worker is not None:
        share = len(ports.RANGE) // workers
        first = ports.RANGE.start + int(worker.removeprefix("gw")) * share
        os.environ[ports.VARIABLE] = f"{first}-{first + share - 1}"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the tests that may take longest: none of them should be left alone at the end."""
    items.sort(key=_seconds_allowed, reverse=True)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep what lives until the end, thousands of tests and their modules, out of every search for garbage."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def _seconds_allowed(item: pytest.Item) -> float:
    own = item.get_closest_marker("timeout")
    return float(own.args[0] if own is not None else item.config.getini("timeout"))


@pytest.fixture(scope="session", autouse=True)
def _announcements(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let runs say where they are in a folder of the tests, in processes that tests start too."""
    with pytest.MonkeyPatch.context() as patch:
        if FOLDER_VARIABLE not in os.environ:
            patch.setenv(FOLDER_VARIABLE, str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session", autouse=True)
def _unsynced() -> Iterator[None]:
    """Wait for no disk in the tests' own process: those about a loss of power bring disks that forget (`disks.py`)."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A running broker; a test that stops or kills it starts it again."""
    with LocalBroker(tmp_path_factory.mktemp("broker"), light=True) as running:
        yield running


@pytest.fixture
def topic() -> Callable[[], str]:
    """Makes topic names that nobody has used; creating the topics is up to the test."""
    prefix = f"t-{uuid.uuid4().hex[:8]}"
    counter = itertools.count(1)
    return lambda: f"{prefix}-{next(counter)}"
