"""The lag of a query behind its input, from the progress that Spark tells of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from twopc.errors import ConfigurationError
from twopc.spark.streaming.source_offsets import SourceOffsets


def lag(progress: Mapping[str, Any]) -> dict[str, int]:
    """Return how many offsets each partition had left behind the end of a batch, by its name: `{"orders[0]": 42}`.

    `progress` is one of a query, such as `query.lastProgress`; other sources than `twopc-kafka` are left out. The ends
    are those that a `read_committed` reader saw when the batch was planned. Markers of transactions are offsets too.
    """
    left: dict[str, int] = {}
    for source in progress["sources"]:
        at, ends = _offsets(source["endOffset"]), _offsets(source["latestOffset"])
        if at is None or ends is None:
            continue
        reached = at.by_partition()
        for end in ends.positions:
            held = reached.get(end.partition)
            behind = max(0, end.position - held.position) if held is not None else 0
            left[str(end.partition)] = max(behind, left.get(str(end.partition), 0))
    return left


def _offsets(stored: Any) -> SourceOffsets | None:
    try:
        return SourceOffsets.from_json(json.loads(stored))
    except (ConfigurationError, TypeError, ValueError):
        return None
