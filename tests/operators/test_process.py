"""A processor: its states, stream time and timers, whatever the batches are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.operators.kit import Chain, row
from twopc import (
    ConfigurationError,
    Context,
    Json,
    Processor,
    Record,
    String,
    UserCodeError,
    ValueState,
)
from twopc.operators import Process, Turn
from twopc.processor import Produced
from twopc.record import Batch
from twopc.state.forms import timed
from twopc.state.layout import StateName
from twopc.testing.rows import InputRow, batch_of
from twopc.testing.states import DictStore


def rows(*parts: tuple[Any, Any, int | None], partition: int = 0) -> list[InputRow]:
    """Rows of key, value and timestamp."""
    return [
        InputRow(value, key_=key, partition_=partition, offset_=offset, timestamp_=stamp)
        for offset, (key, value, stamp) in enumerate(parts)
    ]


def values(processor: Processor, every: Sequence[InputRow], store: DictStore | None = None) -> list[Any]:
    """Return what comes out of one batch, when the states are in the store."""
    chain = Chain([Process(processor, "op")], store or DictStore())
    out = chain.process(batch_of(every)).values
    chain.write_back()
    return out


class Totals(Processor):
    """Two states; none, one or many records."""

    total = ValueState(Json())
    last = ValueState(String())

    def process(self, record: Record, context: Context) -> Produced:
        total = (self.total.get() or 0) + record.value
        self.total.set(total)
        before = self.last.get()
        self.last.set(f"{record.value}")
        if total % 3 == 0:
            return None
        out = record.replace(value=[before, total])
        return out if total % 3 == 1 else [out, out]


def test_a_processor_makes_none_one_or_many_records_of_each_and_keeps_its_states_by_key() -> None:
    store = DictStore()
    assert values(Totals(), rows((b"a", 1, None), (b"b", 3, None), (b"a", 1, None), (b"a", 1, None)), store) == [
        [None, 1],
        ["1", 2],
        ["1", 2],
    ]
    assert store.states == {
        (StateName("op", "total"), 0, b"a"): b"3",
        (StateName("op", "last"), 0, b"a"): b"1",
        (StateName("op", "total"), 0, b"b"): b"3",
        (StateName("op", "last"), 0, b"b"): b"3",
    }


def test_a_state_is_read_and_written_at_most_once_a_batch() -> None:
    store = DictStore({(StateName("op", name), 0, b"before"): b"1" for name in ("last", "total")})
    values(Totals(), rows(*((b"a", 1, None) for _ in range(9))), store)
    assert len(store.writes) == 2
    assert sorted(read for read in store.reads if read[0].is_declared) == [
        (StateName("op", "last"), 0, b"a"),
        (StateName("op", "total"), 0, b"a"),
    ]


class Clears(Processor):
    kept = ValueState(Json())

    def process(self, record: Record, context: Context) -> Iterator[Record]:
        yield record.replace(value=self.kept.get())
        if record.value is None:
            self.kept.clear()
        else:
            self.kept.set(record.value)
            self.kept.get()["changed"] = "in place"


def test_a_cleared_state_is_gone_and_a_value_that_is_changed_in_place_is_not_stored() -> None:
    store = DictStore()
    out = values(Clears(), rows((b"a", {"n": 1}, None), (b"a", None, None), (b"a", {"n": 2}, None)), store)
    assert out == [None, {"n": 1}, None]
    assert store.states == {(StateName("op", "kept"), 0, b"a"): b'{"n":2}'}
    values(Clears(), rows((b"a", None, None)), store)
    assert store.states == {}


class Seen(Processor):
    """What the context says."""

    def process(self, record: Record, context: Context) -> Record:
        known = (context.key, context.timestamp, context.headers, context.topic, context.partition, context.offset)
        return record.replace(value=(*known, context.stream_time))


def test_the_context_has_what_is_known_of_a_record_and_the_stream_time_of_its_partition_number() -> None:
    out = values(
        Seen(),
        [
            InputRow(0, key_="a", headers_=[("h", b"1")]),
            InputRow(0, key_="a", offset_=1, timestamp_=50),
            InputRow(0, key_="b", offset_=2, timestamp_=40),
            InputRow(0, key_="b", partition_=1, timestamp_=7),
            InputRow(0, key_="b", offset_=3),
        ],
    )
    assert out == [
        ("a", None, [("h", b"1")], "in", 0, 0, None),
        ("a", 50, None, "in", 0, 1, 50),
        ("b", 40, None, "in", 0, 2, 50),
        ("b", 7, None, "in", 1, 0, 7),
        ("b", None, None, "in", 0, 3, 50),
    ]


def test_the_stream_time_goes_on_from_the_stored_one() -> None:
    store = DictStore()
    values(Seen(), rows((b"a", 0, 90)), store)
    assert values(Seen(), rows((b"a", 0, 10)), store)[0][-1] == 90


class Once(Processor):
    seen = ValueState(Json(), ttl="1s")

    def process(self, record: Record, context: Context) -> Record | None:
        if self.seen.get() is not None:
            return None
        self.seen.set(record.value)
        return record


def test_a_value_is_absent_when_its_time_to_live_is_over_by_stream_time() -> None:
    stamps = [0, 500, 999, 1_000, 1_500, None, 400, 1_999, 2_000]
    every = rows(*((b"a", stamp, stamp) for stamp in stamps))
    assert values(Once(), every) == [0, 1_000, 2_000]


def test_a_value_that_was_written_before_any_timestamp_does_not_expire() -> None:
    assert values(Once(), rows((b"a", 1, None), (b"a", 2, 10**12))) == [1]


def test_what_has_outlived_its_time_is_gone_from_the_store_few_at_a_time() -> None:
    store = DictStore()
    values(Once(), rows(*((b"k%d" % n, n, n) for n in range(40))), store)
    seen = StateName("op", "seen")
    assert sum(state == seen for state, _, _ in store.states) == 40
    values(Once(), rows((b"late", 0, 10_000)), store)
    assert sum(state == seen for state, _, _ in store.states) == 40 + 1 - (16 + 1)
    values(Once(), rows((b"late", 0, 10_000), (b"late", 0, 10_000)), store)
    assert {key for state, _, key in store.states if state == seen} == {b"late"}
    assert [key[8:] for state, _, key in store.states if state.name == "$expiries"] == [b"seen\0late"]


class Renewing(Processor):
    last = ValueState(Json(), ttl="1s")

    def process(self, record: Record, context: Context) -> Record:
        before = self.last.get()
        self.last.set(record.timestamp) if record.value else self.last.clear()
        return record.replace(value=before)


def test_a_value_that_is_written_again_lives_on_from_then() -> None:
    store = DictStore()
    every = rows((b"a", 1, 0), (b"a", 1, 900), (b"b", 1, 1_200), (b"a", 1, 1_800), (b"a", 0, 1_900))
    assert values(Renewing(), every, store) == [None, 0, None, 900, 1_800]
    expiring = [key for state, _, key in store.states if state.name == "$expiries"]
    assert [key[8:] for key in expiring] == [b"last\0b"]
    assert store.states[StateName("op", "last"), 0, b"b"] == timed(1_200, b"1200")


class Reminding(Processor):
    last = ValueState(Json(), ttl="1s")

    def process(self, record: Record, context: Context) -> None:
        self.last.set(record.value)
        context.set_timer((record.timestamp or 0) + 900)

    def on_timer(self, at: int, context: Context) -> Record:
        return Record(context.key, self.last.get(), timestamp=at)


def test_a_timer_that_fires_late_sees_the_states_as_of_its_own_time() -> None:
    assert values(Reminding(), rows((b"a", 1, 0), (b"b", 2, 10**9))) == [1]


class Untimed(Processor):
    def process(self, record: Record, context: Context) -> Any:
        if record.value == "timer":
            context.set_timer(5)
        return record.value


@pytest.mark.parametrize(
    ("value", "said"),
    [("timer", "no function on_timer"), ("text", "Records, or None, not str"), ([1], "must return a Record, not int")],
)
def test_what_a_processor_may_not_do_names_the_record(value: Any, said: str) -> None:
    with pytest.raises(UserCodeError, match=rf"in\[0\]@1: process\(Untimed, name='op'\) failed: .*{said}"):
        values(Untimed(), rows((b"a", None, None), (b"a", value, None)))


@pytest.mark.parametrize("stored", [b"not json", b""])
def test_a_stored_value_that_its_serde_refuses_is_named(stored: bytes) -> None:
    store = DictStore({(StateName("op", "total"), 0, b"a"): stored})
    with pytest.raises(UserCodeError, match=r"in\[0\]@0: .* the stored state 'total' can't be decoded by Json"):
        values(Totals(), rows((b"a", 1, None)), store)


def test_a_batch_that_fails_writes_nothing_any_more() -> None:
    store = DictStore()
    chain = Chain([Process(Totals(), "op")], store)
    with pytest.raises(UserCodeError, match=r"in\[0\]@1"):
        chain.process(batch_of(rows((b"a", 1, None), (b"a", "x", None))))
    with pytest.raises(AssertionError, match="failed half-way"):
        chain.write_back()
    assert store.writes == []


def test_a_state_belongs_to_the_key_in_hand_and_is_nothing_outside() -> None:
    with pytest.raises(RuntimeError, match="state 'total' is there while process or on_timer runs"):
        Totals().total.get()


class Counting(Processor):
    def __init__(self) -> None:
        self.calls: list[Any] = []

    def process(self, record: Record, context: Context) -> Record:
        self.calls.append(record.value)
        return record.replace(value=len(self.calls))


def test_each_subtask_has_a_processor_of_its_own() -> None:
    processor = Counting()
    assert [values(processor, rows((b"a", 1, None))) for _ in range(2)] == [[1], [1]]
    assert processor.calls == []


class Coroutine(Processor):
    async def process(self, record: Record, context: Context) -> None:  # type: ignore[override]
        pass


@pytest.mark.parametrize(
    ("given", "said"),
    [(Totals, r"not <class .*: write Totals\(\)"), ("text", "needs a Processor"), (Coroutine(), "coroutine function")],
)
def test_what_is_no_processor_is_refused(given: Any, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        Process(given, "op")


@pytest.mark.parametrize("ttl", ["0s", "5", 5])
def test_a_ttl_that_is_none_is_refused(ttl: Any) -> None:
    with pytest.raises(ConfigurationError, match="the ttl of a ValueState"):
        ValueState(Json(), ttl=ttl)


class Base(Processor):
    one = ValueState(Json())
    two = ValueState(Json())

    def process(self, record: Record, context: Context) -> None: ...


class Derived(Base):
    one = None  # type: ignore[assignment]
    three = ValueState(Json(), ttl="1h")


def test_states_are_inherited_and_may_be_taken_away() -> None:
    assert list(Process(Base(), "op").states) == ["$stream-time", "one", "two"]
    assert list(Process(Derived(), "op").states) == ["$stream-time", "$expiries", "two", "three"]


class Everything(Processor):
    """All that may depend on where a batch ends."""

    count = ValueState(Json(), ttl="20ms")
    last = ValueState(Json())

    def process(self, record: Record, context: Context) -> Iterator[Record]:
        count = (self.count.get() or 0) + 1
        if record.value % 5:
            self.count.set(count)
        if record.value % 7 == 0:
            self.last.clear()
        else:
            self.last.set([record.value, context.stream_time])
        if record.value % 3 == 0:
            context.set_timer((context.stream_time or 0) + record.value)
        if record.value % 4 == 0:
            context.delete_timer((context.stream_time or 0) + record.value // 2)
        for _ in range(record.value % 3):
            yield record.replace(value=[count, self.last.get()])

    def on_timer(self, at: int, context: Context) -> Record | None:
        if at % 2:
            context.set_timer(at + 9)
            return None
        return Record(context.key, ["timer", at, self.count.get(), context.offset], timestamp=at)


records = st.lists(
    st.tuples(
        st.sampled_from([b"a", b"b", b"c"]), st.integers(0, 30), st.none() | st.integers(0, 100), st.integers(0, 1)
    ),
    min_size=1,
    max_size=40,
)


@given(records=records, cuts=st.sets(st.integers(1, 40)), restarts=st.booleans())
def test_outputs_and_states_do_not_depend_on_where_batches_end(
    records: list[tuple[bytes, int, int | None, int]], cuts: set[int], restarts: bool
) -> None:
    every = [
        InputRow(value, key_=key, partition_=number, offset_=offset, timestamp_=stamp)
        for offset, (key, value, stamp, number) in enumerate(records)
    ]
    step, whole_store, cut_store = Process(Everything(), "op"), DictStore(), DictStore()
    whole = Chain([step], whole_store)
    expected = described(whole.process(batch_of(every)))
    whole.write_back()
    out: list[Any] = []
    chain = Chain([step], cut_store)
    ends = [0, *sorted(cut for cut in cuts if cut < len(every)), len(every)]
    for start, end in pairwise(ends):
        out += described(chain.process(batch_of(every[start:end])))
        chain.write_back()
        chain = Chain([step], cut_store) if restarts else chain
    assert out == expected
    assert cut_store.states == whole_store.states


def described(batch: Batch) -> list[Any]:
    return list(zip([row.offset() for row in batch.rows], batch.keys, batch.values, batch.timestamps, strict=True))


def test_a_batch_may_be_cut_at_a_processor() -> None:
    class Cutting(Totals):
        def process(self, record: Record, context: Context) -> Produced:
            flow.cut()
            return super().process(record, context)

    flow = row([Process(Cutting(), "op")], DictStore())
    flow.put(Turn.of("in", batch_of(rows(*((b"a", 1, None) for _ in range(3))))))
    assert [flow.advance()[0] for _ in range(3)] == [1, 1, 1]
    assert not flow.waits
