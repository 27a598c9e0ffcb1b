from __future__ import annotations

from typing import Any

import pytest

from tests.operators.kit import Chain, put_through, row
from twopc.errors import UserCodeError
from twopc.operators import MapRecords, SinkOutput, StatefulMap, Step
from twopc.record import Batch, RecordError
from twopc.serde import Json
from twopc.state.layout import StateName
from twopc.testing.rows import InputRow, batch_of
from twopc.testing.states import DictStore

TOTALS, LAST = StateName.parse("total"), StateName.parse("last")


def total(state: int | None, value: int) -> tuple[int | None, int]:
    new = (state or 0) + value
    return new or None, new


TOTAL = StatefulMap(total, "total", Json())


def processed(store: DictStore, batch: Batch, *steps: Step) -> list[Any]:
    """Return the outputs, when the states are in the store."""
    chain = Chain(steps or [TOTAL], store)
    values = chain.process(batch).values
    chain.write_back()
    return values


def rows(*parts: tuple[Any, int, int]) -> list[InputRow]:
    return [InputRow(value, key_=key, partition_=at, offset_=offset) for offset, (key, value, at) in enumerate(parts)]


def test_a_batch_reads_and_writes_each_of_its_keys_once() -> None:
    store = DictStore({(TOTALS, 0, b"before"): b"1"})
    batch = batch_of(rows((b"a", 1, 0), (b"b", 2, 0), (b"a", 3, 0), (b"a", 4, 0)))
    assert processed(store, batch) == [1, 2, 4, 8]
    assert sorted(store.reads) == [(TOTALS, 0, b"a"), (TOTALS, 0, b"b")]
    assert store.writes == [(0, b"a", b"8"), (0, b"b", b"2")]


def test_equal_keys_of_two_partitions_have_a_state_each() -> None:
    store = DictStore()
    batch = batch_of(rows((b"a", 1, 0), (b"a", 10, 1), (b"a", 1, 0)))
    assert processed(store, batch) == [1, 10, 2]
    assert store.states == {(TOTALS, 0, b"a"): b"2", (TOTALS, 1, b"a"): b"10"}


def test_partitions_of_one_number_of_two_topics_share_the_states() -> None:
    store = DictStore()
    batch = batch_of([InputRow(1, key_=b"a", topic_=topic, partition_=1) for topic in ("web", "shop", "web")])
    assert processed(store, batch) == [1, 2, 3]
    assert store.states == {(TOTALS, 1, b"a"): b"3"}


def test_the_state_of_the_batch_before_is_seen() -> None:
    chain = Chain([TOTAL], DictStore({(TOTALS, 0, b"a"): b"40"}))
    assert chain.process(batch_of(rows((b"a", 2, 0)))).values == [42]


def test_a_new_state_of_none_deletes_the_key() -> None:
    store = DictStore({(TOTALS, 0, b"a"): b"5"})
    processed(store, batch_of(rows((b"a", -5, 0))))
    assert store.writes == [(0, b"a", None)]
    assert store.states == {}


def test_a_key_that_is_forgotten_within_a_batch_begins_anew_in_it() -> None:
    store = DictStore()
    batch = batch_of(rows((b"a", 5, 0), (b"a", -5, 0), (b"a", 2, 0)))
    step = StatefulMap(lambda state, value: (None if value < 0 else value, state), "last", Json())
    assert processed(store, batch, step) == [None, 5, None]
    assert store.states == {(LAST, 0, b"a"): b"2"}


def test_a_state_that_did_not_change_is_not_written() -> None:
    store = DictStore({(TOTALS, 0, b"a"): b"5"})
    processed(store, batch_of(rows((b"a", 0, 0), (b"b", 0, 0))))
    assert store.writes == []


def test_a_batch_that_fails_changes_nothing_in_the_store_and_nothing_is_written_after_it() -> None:
    store = DictStore({(TOTALS, 0, b"a"): b"5"})
    chain = Chain([TOTAL], store)
    with pytest.raises(UserCodeError, match=r"in\[0\]@1"):
        chain.process(batch_of(rows((b"a", 1, 0), (b"a", "x", 0))))  # type: ignore[arg-type]
    with pytest.raises(AssertionError, match="failed half-way"):
        chain.write_back()
    assert store.writes == []


def test_a_key_that_comes_again_is_not_read_again() -> None:
    store = DictStore({(TOTALS, 0, b"before"): b"1"})
    chain = Chain([TOTAL], store)
    for value in (1, 2, 3):
        chain.process(batch_of(rows((b"a", value, 0))))
    chain.write_back()
    assert store.reads == [(TOTALS, 0, b"a")]
    assert store.writes == [(0, b"a", b"6")]


@pytest.mark.parametrize(
    ("key", "address"),
    [
        (b"\xfe", b"\xfe"),
        (b"\xff", b"\xff\xff"),
        ("\u00e9", b"\xc3\xa9"),
        (7, b"\xff7"),
        ({"b": 1, "a": [None]}, b'\xff{"a":[null],"b":1}'),
    ],
)
def test_a_key_addresses_its_state_in_one_form(key: Any, address: bytes) -> None:
    store = DictStore()
    processed(store, batch_of(rows((key, 1, 0))))
    assert list(store.states) == [(TOTALS, 0, address)]


def test_keys_of_other_types_have_states_of_their_own() -> None:
    store = DictStore()
    keys = (1, "1", True, "true", {"a": 1}, '{"a":1}')
    assert processed(store, batch_of(rows(*((key, 1, 0) for key in keys * 2)))) == [1] * 6 + [2] * 6
    assert len(store.states) == 6


def test_records_without_a_key_go_wrong_and_no_others() -> None:
    refused: list[Any] = []

    def skip(_source: str, error: RecordError) -> list[SinkOutput]:
        refused.append(error.row.offset())
        return []

    flow = row([TOTAL], DictStore(), skip)
    every = rows((b"a", 1, 0), ("b", 10, 0), (None, 10, 0), (b"a", 2, 0), (None, 10, 0), (b"a", 4, 0))
    parts = [every[:4], every[4:]]
    values = [
        value for part in parts for each in put_through(flow, "in", batch_of(part)) for value in each.batch.values
    ]
    assert (values, refused) == ([1, 10, 3, 7], [2, 4])


@pytest.mark.parametrize("in_one_batch", [True, False])
def test_text_and_its_bytes_are_one_key_wherever_batches_end(in_one_batch: bool) -> None:
    chain = Chain([TOTAL], DictStore())
    both = rows((b"a", 1, 0), ("a", 2, 0))
    parts = [both] if in_one_batch else [both[:1], both[1:]]
    assert [value for part in parts for value in chain.process(batch_of(part)).values] == [1, 3]


def test_the_key_is_the_one_that_the_record_has_by_then() -> None:
    store = DictStore()
    by_value = MapRecords(lambda record: record.replace(key=b"%d" % record.value))
    processed(store, batch_of(rows((b"a", 1, 0), (b"a", 2, 1))), by_value, TOTAL)
    assert list(store.states) == [(TOTALS, 0, b"1"), (TOTALS, 1, b"2")]


def test_a_record_without_a_key_is_refused_by_name() -> None:
    with pytest.raises(UserCodeError, match=r"in\[1\]@1 has no key, and stateful_map\(total, name='total'\) keeps"):
        Chain([TOTAL], DictStore()).process(batch_of(rows((b"a", 1, 0), (None, 1, 1))))


@pytest.mark.parametrize("new", [{1: 2}, 2**64], ids=["in place", "scalar"])
def test_a_state_that_its_serde_can_not_encode_names_the_record_that_left_it(new: Any) -> None:
    step = StatefulMap(lambda state, value: (new if value == 2 else value, value), "last", Json())
    with pytest.raises(UserCodeError, match=r"in\[0\]@2: .* the new state can't be encoded by Json\(\)"):
        Chain([step], DictStore()).process(batch_of(rows((b"b", 1, 0), (b"a", 1, 0), (b"a", 2, 0), (b"b", 1, 0))))


def test_a_stored_state_that_its_serde_can_not_decode_names_the_record_that_needed_it() -> None:
    store = DictStore({(TOTALS, 0, b"a"): b"not json"})
    with pytest.raises(UserCodeError, match=r"in\[0\]@1: .* the stored state can't be decoded by Json\(\)"):
        Chain([TOTAL], store).process(batch_of(rows((b"b", 1, 0), (b"a", 1, 0))))


def history(state: dict[str, Any] | None, value: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Change the state in place, share it with the output, and keep what JSON has no form of its own for."""
    state = state or {"seen": ()}
    state["seen"] = (*state["seen"], value, type(state["seen"]).__name__)
    return state, state


def test_outputs_do_not_depend_on_where_a_batch_ends() -> None:
    step = StatefulMap(history, "history", Json())
    every = rows((b"a", 1, 0), (b"a", 2, 0), (b"b", 9, 0), (b"a", 3, 0))
    together = Chain([step], DictStore()).process(batch_of(every)).values
    one_by_one = Chain([step], DictStore())
    assert together == [one_by_one.process(batch_of([row])).values[0] for row in every]
    assert [len(output["seen"]) for output in together] == [2, 4, 2, 6]
