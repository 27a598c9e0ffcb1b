"""One map_async between a source and a sink."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import closing
from typing import Any

from tests.operators.kit import put_through, row
from twopc.operators import MapAsync
from twopc.record import Batch
from twopc.testing.rows import InputRow, batch_of
from twopc.testing.states import DictStore

PATIENCE_SECONDS = 120.0


def numbers(count: int) -> Batch:
    """Return a batch of the numbers from 0 on."""
    return batch_of([InputRow(number, b"key", offset_=number) for number in range(count)])


def step(
    function: Callable[..., Awaitable[Any]], concurrency: int = 8, timeout_ms: int | None = None, retries: int = 0
) -> MapAsync:
    """Return the step."""
    return MapAsync(function, concurrency, timeout_ms, retries)


def made(function: MapAsync, count: int) -> list[Any]:
    """Return what it makes of so many numbers."""
    with closing(row([function], DictStore())) as flow:
        return put_through(flow, "in", numbers(count))[0].batch.values
