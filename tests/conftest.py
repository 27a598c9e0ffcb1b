"""The fixtures of all tests: one real broker for the whole run, started when a test first asks, and fresh names.

Where a run is spread over several processes, each has a broker of its own.
"""

from __future__ import annotations

import gc
import itertools
import os
import uuid
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests import record_paths, warm_start
from tests.groups import name_groups
from tests.marked_files import require_names
from twopc.compiled import problems
from twopc.kafka import native
from twopc.testing.broker import Broker
from twopc.testing.local_broker import LocalBroker
from twopc.user_folders import STATE_VARIABLE

if TYPE_CHECKING:
    from tests.object_server.azurite import Azurite
    from tests.object_server.server import ObjectServer
    from twopc.testing.local_hdfs import LocalHdfs

# How long an example takes says something of the machine, and nothing of the code. Each run draws others.
EXAMPLES = int(os.environ.get("PROPERTY_EXAMPLES", "20"))
settings.register_profile(
    "patient", max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("patient")


def pytest_configure() -> None:
    """Choose the paths of records before the processes of tests start, so that all of them choose the same."""
    record_paths.choose()
    warm_start.install()


def pytest_report_header() -> list[str]:
    """Say what of the compiled parts these tests do without."""
    return problems()


def pytest_itemcollected(item: pytest.Item) -> None:
    """Refuse a test that its tier would never play, whatever is chosen of those that are collected."""
    require_names(item)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with the tests that may take longest: none of them should be left alone at the end."""
    items.sort(key=_seconds_allowed, reverse=True)
    if getattr(config.option, "loadgroup", False):
        name_groups(items)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep what lives until the end, thousands of tests and their modules, out of every search for garbage."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Say with what goes wrong which path records took."""
    report = yield
    if report.failed and native.VARIABLE in os.environ:
        report.sections.append(("path of records", f"{native.VARIABLE}={os.environ[native.VARIABLE]} chooses it again"))
    return report


def _seconds_allowed(item: pytest.Item) -> float:
    own = item.get_closest_marker("timeout")
    return float(own.args[0] if own is not None else item.config.getini("timeout"))


@pytest.fixture
def forgotten_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the job files that others have loaded is to travel here, nor of these elsewhere.

    What a file of a test that goes one by one has asked of the environment would let all that follow do so.
    """
    monkeypatch.setattr("twopc.loader.job_loader._folders", set())
    monkeypatch.setattr("twopc.loader.job_loader._environment", {})


@pytest.fixture(autouse=True)
def _record_path(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let the records of some tests go one by one, in processes that they start too."""
    if not record_paths.is_one_by_one(request.node.nodeid):
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(native.VARIABLE, "0")
        native.batches.cache_clear()
        yield
    native.batches.cache_clear()


@pytest.fixture(autouse=True)
def _cold_start(request: pytest.FixtureRequest) -> Iterator[None]:
    """Start the drivers of Spark as users do: beside a JVM's start an interpreter's is nothing."""
    with pytest.MonkeyPatch.context() as patch:
        if request.node.get_closest_marker("spark") is not None:
            patch.setenv(warm_start.COLD, "1")
        yield


@pytest.fixture(scope="session", autouse=True)
def _announcements(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let runs say where they are in a folder of the tests, in processes that tests start too."""
    with pytest.MonkeyPatch.context() as patch:
        if STATE_VARIABLE not in os.environ:
            patch.setenv(STATE_VARIABLE, str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session", autouse=True)
def _unsynced() -> Iterator[None]:
    """Wait for no disk in the tests' own process: those about a loss of power bring disks that forget (`disks.py`)."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(scope="session")
def object_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectServer]:
    """A running server that speaks S3, and lets one of several creators of a name succeed."""
    from tests.object_server.server import ObjectServer

    with ObjectServer(tmp_path_factory.mktemp("objects")) as running:
        running.require_atomic_create()
        yield running


@pytest.fixture(scope="session")
def azure_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Azurite]:
    """A running server that speaks as Azure Blob Storage does."""
    from tests.object_server.azurite import PROGRAM, Azurite, is_installed

    if not is_installed():
        pytest.skip(f"there is no {PROGRAM} on the PATH: npm install -g azurite")
    with Azurite(tmp_path_factory.mktemp("azure")) as running:
        yield running


@pytest.fixture(scope="session")
def hdfs_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalHdfs]:
    """A running HDFS."""
    pytest.importorskip("hdfs_native", reason="HDFS needs the extra twopc-streams[hdfs]")
    from twopc.testing.local_hdfs import LocalHdfs

    with LocalHdfs(tmp_path_factory.mktemp("hdfs")) as running:
        yield running


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
