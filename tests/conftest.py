"""What all tests share: one real broker for the whole run, started when the first test asks for it, and fresh names."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Iterator

import pytest

from twopc.testing.broker import Broker
from twopc.testing.local_broker import LocalBroker


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A running broker; a test that stops or kills it starts it again."""
    with LocalBroker(tmp_path_factory.mktemp("broker")) as running:
        yield running


@pytest.fixture
def topic() -> Callable[[], str]:
    """Makes topic names that nobody has used; creating the topics is up to the test."""
    prefix = f"t-{uuid.uuid4().hex[:8]}"
    counter = itertools.count(1)
    return lambda: f"{prefix}-{next(counter)}"
