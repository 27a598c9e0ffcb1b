"""How far a query is behind, as its progress tells."""

from __future__ import annotations

import json

from twopc.spark.streaming import lag


def offsets(**topics: dict[str, int]) -> str:
    held = {topic: {"id": "an-id", "offsets": offsets} for topic, offsets in topics.items()}
    return json.dumps({"version": 1, "topics": held})


def test_what_is_left_of_each_partition_is_told() -> None:
    source = {"endOffset": offsets(orders={"0": 10, "1": 5}), "latestOffset": offsets(orders={"0": 52, "1": 5})}
    assert lag({"sources": [source]}) == {"orders[0]": 42, "orders[1]": 0}


def test_of_a_topic_that_is_read_twice_the_slower_reading_counts() -> None:
    sources = [
        {"endOffset": offsets(orders={"0": at}), "latestOffset": offsets(orders={"0": 52})} for at in (50, 10, 20)
    ]
    assert lag({"sources": sources}) == {"orders[0]": 42}


def test_other_sources_have_no_lag_here() -> None:
    sources = [
        {"endOffset": '{"logOffset": 3}', "latestOffset": None},
        {"endOffset": None, "latestOffset": offsets(orders={"0": 52})},
        {"endOffset": "7", "latestOffset": "9"},
    ]
    assert lag({"sources": sources}) == {}
