"""map_async: coroutines in flight together, and results, errors and checkpoints as if they were one after the other."""

from __future__ import annotations

import asyncio
import random
import threading
from collections import Counter
from contextlib import closing
from typing import Any

import pytest

from tests.operators.async_kit import PATIENCE_SECONDS, made, numbers, step
from tests.operators.kit import put_through, row
from twopc import Job, Json, KafkaSink, KafkaSource, Record
from twopc.errors import UserCodeError
from twopc.operators import MapAsyncRecords, SinkOutput, Turn, async_map
from twopc.record import RecordError
from twopc.testing import MemoryRun
from twopc.testing.states import DictStore


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(async_map, "FIRST_PAUSE_SECONDS", 0.001)


@pytest.mark.parametrize("concurrency", [1, 3, 100])
def test_results_come_in_the_order_of_the_records_whichever_call_ends_first(concurrency: int) -> None:
    chance = random.Random(concurrency)

    async def slowly(value: int) -> int:
        await asyncio.sleep(chance.random() / 100)
        return value * 2

    assert made(step(slowly, concurrency), 50) == [2 * number for number in range(50)]


def test_as_many_calls_as_the_concurrency_are_in_flight_and_never_more() -> None:
    in_flight, counts = 0, []

    async def count(_: int) -> None:
        nonlocal in_flight
        in_flight += 1
        counts.append(in_flight)
        await asyncio.sleep(0.001)
        in_flight -= 1

    made(step(count, concurrency=5), 40)
    assert max(counts) == 5


def test_records_are_given_and_returned_whole() -> None:
    async def moved(record: Record) -> Record:
        await asyncio.sleep(0)
        return record.replace(key=b"%d" % record.offset, value=record.value + 1)

    with closing(row([MapAsyncRecords(moved, 4, None, 0)], DictStore())) as flow:
        batch = put_through(flow, "in", numbers(3))[0].batch
    assert (batch.keys, batch.values) == ([b"0", b"1", b"2"], [1, 2, 3])


def test_what_is_no_record_is_refused_and_the_call_not_made_again() -> None:
    calls = []

    async def wrong(record: Record) -> Any:
        calls.append(record.offset)
        return record.value

    with (
        closing(row([MapAsyncRecords(wrong, 1, None, 5)], DictStore())) as flow,
        pytest.raises(UserCodeError, match="must return a Record, not int"),
    ):
        put_through(flow, "in", numbers(1))
    assert calls == [0]


def test_a_call_that_fails_is_made_again_as_often_as_was_said() -> None:
    calls: list[int] = []

    async def third_time_lucky(value: int) -> int:
        calls.append(value)
        if calls.count(value) < 3:
            raise ConnectionError("away")
        return value

    assert made(step(third_time_lucky, retries=2), 4) == [0, 1, 2, 3]
    assert len(calls) == 12


def test_a_record_whose_calls_all_fail_is_named_with_function_line_and_cause() -> None:
    calls: list[int] = []

    async def refuse_three(value: int) -> int:
        calls.append(value)
        if value == 3:
            raise ConnectionError("refused")
        return value

    named = r"record in\[0\]@3: map_async\(.*refuse_three\) failed: ConnectionError: refused \(test_async_map.py:\d+\)"
    with pytest.raises(UserCodeError, match=named):
        made(step(refuse_three, retries=2), 5)
    assert calls.count(3) == 3


def test_of_several_records_that_fail_the_first_is_named_and_no_call_is_begun_behind_it() -> None:
    begun, ended = [], []

    async def fail(value: int) -> None:
        begun.append(value)
        await asyncio.sleep({2: 0.05, 4: 0.0}.get(value, 0.1))
        ended.append(value)
        if value in (2, 4):
            raise ValueError(value)

    with pytest.raises(UserCodeError, match=r"@2: .*ValueError: 2"):
        made(step(fail, concurrency=6), 20)
    assert sorted(begun) == sorted(ended) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("concurrency", [1, 3, 10])
@pytest.mark.parametrize("cuts", [False, True])
def test_where_the_job_goes_on_behind_a_record_no_call_is_made_again(concurrency: int, *, cuts: bool) -> None:
    chance, calls = random.Random(concurrency), Counter[int]()
    refused: list[int | None] = []

    async def some_fail(value: int) -> int:
        calls[value] += 1
        if cuts and value % 5 == 0:
            flow.cut()
        await asyncio.sleep(chance.random() / 1_000)
        if value % 3 == 1:
            raise ValueError(value)
        return -value

    def refuse(source: str, error: RecordError) -> list[SinkOutput]:
        refused.append(error.row.offset())
        return []

    outputs = []
    with closing(row([step(some_fail, concurrency)], DictStore(), refuse)) as flow:
        flow.put(Turn.of("in", numbers(40)))
        while flow.waits:
            outputs += [value for output in flow.advance()[1] for value in output.batch.values]
    assert outputs == [-value for value in range(40) if value % 3 != 1]
    assert refused == [value for value in range(40) if value % 3 == 1]
    assert set(calls.values()) == {1}


def test_a_call_that_takes_longer_than_the_timeout_has_failed() -> None:
    async def hang(value: int) -> None:
        await asyncio.sleep(PATIENCE_SECONDS if value == 1 else 0)

    with pytest.raises(UserCodeError, match=r"@1: map_async\(.*hang\) failed: TimeoutError: no result within 0.02 s"):
        made(step(hang, timeout_ms=20, retries=1), 3)


def test_a_coroutine_that_swallows_its_cancellation_counts_when_it_returns() -> None:
    async def stubborn(value: int) -> int:
        try:
            await asyncio.sleep(PATIENCE_SECONDS)
        except asyncio.CancelledError:
            return value + 10
        return value

    assert made(step(stubborn, timeout_ms=20), 2) == [10, 11]


@pytest.mark.parametrize("exit_", [SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError()], ids=repr)
@pytest.mark.parametrize("in_task", [False, True], ids=["itself", "a task of it"])
def test_what_ends_a_process_or_a_task_elsewhere_is_an_error_of_the_record(exit_: BaseException, in_task: bool) -> None:
    async def leave(value: int) -> None:
        if value == 1:
            raise exit_

    async def leave_in_a_task(value: int) -> None:
        await asyncio.create_task(leave(value))

    with pytest.raises(UserCodeError, match=rf"@1: .*{type(exit_).__name__}"):
        made(step(leave_in_a_task if in_task else leave), 3)


def test_a_task_that_cancels_itself_is_an_error_of_the_record() -> None:
    async def cancel_itself(value: int) -> int:
        task = asyncio.current_task()
        if value == 1 and task is not None:
            task.cancel()
        await asyncio.sleep(0)
        return value

    with pytest.raises(UserCodeError, match=r"@1: .*CancelledError"):
        made(step(cancel_itself), 3)


def test_of_a_batch_that_is_cut_no_further_call_is_begun_and_those_in_flight_come_out() -> None:
    begun = []

    async def cutting(value: int) -> int:
        begun.append(value)
        if value == 4:
            flow.cut()
        await asyncio.sleep(0.001)
        return value

    with closing(row([step(cutting, concurrency=5)], DictStore())) as flow:
        flow.put(Turn.of("in", numbers(12)))
        assert [output.batch.values for output in flow.advance()[1]] == [[0, 1, 2, 3, 4]]
        assert [waiting.offset() for waiting in flow.waiting_rows("in")] == list(range(5, 12))
        assert begun == [0, 1, 2, 3, 4]
        assert [output.batch.values for output in flow.advance()[1]] == [list(range(5, 12))]


def test_the_record_that_a_batch_waits_for_is_the_oldest_in_flight() -> None:
    waiting, go_on = threading.Event(), threading.Event()

    async def wait_for_two(value: int) -> int:
        if value == 2:
            waiting.set()
            await asyncio.to_thread(go_on.wait, PATIENCE_SECONDS)
        return value

    with closing(row([step(wait_for_two, concurrency=2)], DictStore())) as flow:
        batch = threading.Thread(target=put_through, args=(flow, "in", numbers(6)))
        batch.start()
        assert waiting.wait(PATIENCE_SECONDS)
        place = flow.place()
        go_on.set()
        batch.join()
    assert place is not None
    assert place.endswith("wait_for_two) at record in[0]@2")


async def doubled(value: int) -> int:
    await asyncio.sleep(random.random() / 1000)
    return 2 * value


@pytest.mark.parametrize("after", ["processing", "pre-commit", "completion"])
def test_after_a_crash_nothing_is_lost_or_doubled(after: Any) -> None:
    job = Job("async")
    job.source(KafkaSource("in", value=Json())).map_async(doubled, timeout="1m").sink(KafkaSink("out", value=Json()))
    with MemoryRun(job, partitions=4, parallelism=2) as run:
        for number in range(20):
            run.send("in", number, b"%d" % number)
        run.checkpoint()
        for number in range(20, 40):
            run.send("in", number, b"%d" % number)
        run.crash(after=after)
        run.checkpoint()
        assert sorted(record.value for record in run.read("out")) == list(range(0, 80, 2))


def test_a_batch_has_room_for_all_calls_that_may_be_in_flight() -> None:
    most = 0

    class Gauge:
        in_flight = 0

        async def __call__(self, value: int) -> int:
            nonlocal most
            self.in_flight += 1
            most = max(most, self.in_flight)
            await asyncio.sleep(0.001)
            self.in_flight -= 1
            return value

    job = Job("gauge")
    job.source(KafkaSource("in", value=Json())).map_async(Gauge(), concurrency=30).sink(KafkaSink("out", value=Json()))
    with MemoryRun(job) as run:
        for number in range(30):
            run.send("in", number)
        run.checkpoint()
    assert most == 30
