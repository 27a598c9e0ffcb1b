"""Brokers of librdkafka's own, in this process: no JVM. Without the compiled part there is nothing to test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Producer

from tests.compiled_parts import compiled_part
from twopc.compiled import BATCHES
from twopc.kafka import native

PARTITIONS = 4


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Turn the compiled part on, and return it; skip where it was not built."""
    compiled_part(BATCHES)
    monkeypatch.setenv(native.VARIABLE, "1")
    native.batches.cache_clear()
    if (module := native.batches()) is None:
        pytest.skip(native.in_use())
    yield module
    native.batches.cache_clear()


@pytest.fixture(scope="session")
def mock_servers() -> Iterator[str]:
    """Return the address of a cluster that keeps what is written; topics have 4 partitions."""
    owner = Producer({"test.mock.num.brokers": 1, "log_level": 0})
    (node,) = owner.list_topics(timeout=60).brokers.values()
    yield f"{node.host}:{node.port}"
    owner.flush(0)


@pytest.fixture
def new_topic(mock_servers: str) -> Callable[[], str]:
    """Return a function that creates a topic and returns its name."""
    creator = Producer({"bootstrap.servers": mock_servers, "log_level": 0})

    def create() -> str:
        name = f"topic-{uuid4().hex[:8]}"
        assert len(creator.list_topics(name, timeout=60).topics[name].partitions) == PARTITIONS
        return name

    return create
