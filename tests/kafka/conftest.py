"""A topic and a job name of its own for every test against a broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest

from tests.compiled_parts import compiled_part
from tests.kafka.kit import DrivenSink
from twopc.compiled import BATCHES
from twopc.kafka import native
from twopc.testing.topics import create_topic


@pytest.fixture(params=["objects", "columns"])
def record_path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let records take each of their two paths; skip the compiled one where it was not built."""
    if request.param == "columns":
        compiled_part(BATCHES)
    monkeypatch.setenv(native.VARIABLE, "1" if request.param == "columns" else "0")
    native.batches.cache_clear()
    yield
    native.batches.cache_clear()


@pytest.fixture
def servers(broker: Any) -> str:
    """Return the bootstrap servers of the broker under test."""
    found: str = broker.bootstrap_servers
    return found


@pytest.fixture
def job() -> str:
    """Return a job name that no other test uses."""
    return f"job-{uuid4().hex[:8]}"


@pytest.fixture
def new_topic(servers: str) -> Callable[..., str]:
    """Return a function that creates a topic and returns its name."""

    def create(partitions: int = 1, **settings: str) -> str:
        name = f"topic-{uuid4().hex[:8]}"
        create_topic(
            servers, name, partitions, settings={key.replace("_", "."): value for key, value in settings.items()}
        )
        return name

    return create


@pytest.fixture
def out(new_topic: Callable[..., str]) -> str:
    """Return an output topic with one partition."""
    return new_topic()


@pytest.fixture
def driven(servers: str, job: str, out: str) -> Iterator[DrivenSink]:
    """Return an exactly-once sink to `out`, first attempt started."""
    sink = DrivenSink(servers, job, out, input_topic=out)
    sink.start_attempt()
    yield sink
    sink.die()
