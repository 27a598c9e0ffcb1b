"""The function of a map_async: what it may be, what it opens and closes, and how it ends."""

from __future__ import annotations

import asyncio
import gc
import random
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from tests.operators.async_kit import PATIENCE_SECONDS, made, numbers, step
from tests.operators.kit import put_through, row
from twopc import Job, Json, KafkaSink, KafkaSource, Skip
from twopc.errors import ConfigurationError, UserCodeError
from twopc.operators import Dataflow, async_map
from twopc.termination import Terminated
from twopc.testing import MemoryRun
from twopc.testing.states import DictStore


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    yield
    gc.collect()
    for thread in threading.enumerate():
        if thread.name == "twopc-async":
            thread.join(PATIENCE_SECONDS)
    assert not [thread for thread in threading.enumerate() if thread.name == "twopc-async"]


class Client:
    """Counts what is opened and closed; shared by the copies of it."""

    def __init__(self) -> None:
        self.log: list[tuple[str, int]] = []
        self.loop: Any = None

    async def open(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.log.append(("open", id(self)))

    async def __call__(self, value: int) -> int:
        assert asyncio.get_running_loop() is self.loop
        return value

    async def close(self) -> None:
        self.log.append(("close", id(self)))


def test_each_subtask_opens_a_copy_of_the_function_before_the_first_call_and_closes_it_at_the_end() -> None:
    client = Client()
    with closing(row([step(client)], DictStore())) as one, closing(row([step(client)], DictStore())) as other:
        assert client.log == []
        for flow in (one, one, other):
            assert put_through(flow, "in", numbers(2))[0].batch.values == [0, 1]
    assert [what for what, _ in client.log] == ["open", "open", "close", "close"]
    assert len({copy for _, copy in client.log}) == 2
    assert id(client) not in {copy for _, copy in client.log}


def test_an_open_that_fails_names_the_operator() -> None:
    class Broken(Client):
        async def open(self) -> None:
            raise ConnectionError("nobody there")

    broken = Broken()
    with pytest.raises(UserCodeError, match=r"open\(\) of map_async\(.*Broken\) failed: ConnectionError: nobody there"):
        made(step(broken), 2)
    assert broken.log == []


def test_a_close_that_fails_is_told_and_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Client):
        async def close(self) -> None:
            raise ConnectionError("reset")

    assert made(step(Broken()), 2) == [0, 1]
    assert "Broken): ConnectionError('reset')" in caplog.text


def test_tasks_that_the_function_leaves_behind_are_cancelled_at_the_end() -> None:
    ended = []

    async def background() -> None:
        try:
            await asyncio.sleep(PATIENCE_SECONDS)
        finally:
            ended.append(True)

    tasks = set()

    async def leaving(value: int) -> int:
        tasks.add(asyncio.create_task(background()))
        await asyncio.sleep(0)
        return value

    assert made(step(leaving), 3) == [0, 1, 2]
    assert len(ended) == 3


def test_the_end_of_the_process_ends_calls_in_flight() -> None:
    began, cancelled = threading.Event(), threading.Event()

    async def hang(_: int) -> None:
        began.set()
        try:
            await asyncio.sleep(PATIENCE_SECONDS)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    flow = row([step(hang)], DictStore())
    with closing(flow), pytest.raises(Terminated):
        terminated_while(began, flow)
    assert cancelled.is_set()


def terminated_while(began: threading.Event, flow: Dataflow) -> None:
    """Process a batch, and have the main thread told to end once it has begun."""

    def on_term(*_: Any) -> None:
        raise Terminated(143)

    def strike() -> None:
        assert began.wait(PATIENCE_SECONDS)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, on_term)
    striker = threading.Thread(target=strike)
    striker.start()
    try:
        put_through(flow, "in", numbers(2))
    finally:
        striker.join()
        signal.signal(signal.SIGUSR1, before)


def test_a_function_that_blocks_the_loop_holds_up_the_end_for_a_bounded_time(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(async_map, "CLOSE_SECONDS", 0.05)
    began, go_on = threading.Event(), threading.Event()

    async def block(_: int) -> None:
        began.set()
        go_on.wait(PATIENCE_SECONDS)

    flow = row([step(block)], DictStore())
    with closing(flow), pytest.raises(Terminated):
        terminated_while(began, flow)
    go_on.set()
    assert "what it has begun does not end" in caplog.text


def test_a_loop_that_runs_in_the_calling_thread_is_no_obstacle() -> None:
    async def double(value: int) -> int:
        return 2 * value

    async def notebook() -> list[Any]:
        return made(step(double), 2)

    assert asyncio.run(notebook()) == [0, 2]


WRONG: Any = 1.5


async def wanted(value: Any) -> Any:
    return value


@pytest.mark.parametrize(
    ("build", "complaint"),
    [
        (lambda s: s.map_async(len), r"map_async\(len\) needs a coroutine function \(async def\).*give that to map"),
        (lambda s: s.map_async(WRONG), "map_async needs a function, not float"),
        (lambda s: s.map_async(Client), r"map_async\(Client\) needs a coroutine function"),
        (lambda s: s.map_async(wanted, concurrency=0), "concurrency of map_async must be a whole number from 1 on"),
        (lambda s: s.map_async(wanted, retries=WRONG), "retries of map_async must be a whole number from 0 on"),
        (lambda s: s.map_async(wanted, timeout="5"), "timeout of map_async: '5' is not a duration"),
        (lambda s: s.map_async(wanted, timeout="0s"), "timeout of map_async must be longer than nothing"),
        (lambda s: s.map(wanted), r"map\(wanted\) can't run a coroutine function: give that to map_async"),
        (lambda s: s.filter(Client()), r"filter\(Client\) can't run a coroutine function"),
        (
            lambda s: s.map_async_records(wanted).stateful_map(lambda state, value: (state, value), name="n"),
            r"map_async_records\(wanted\) before it may change the key",
        ),
    ],
)
def test_what_can_not_work_is_refused_when_the_job_is_built(build: Callable[[Any], Any], complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        build(Job("wrong").source(KafkaSource("in")))


def test_a_function_whose_close_is_none_to_await_is_refused() -> None:
    class Plain:
        async def __call__(self, value: Any) -> Any:
            return value

        def close(self) -> None: ...

    with pytest.raises(ConfigurationError, match=r"awaits close\(\) of its function: make that a coroutine function"):
        step(Plain())


def test_a_record_whose_calls_all_fail_is_skipped_where_the_policy_says_so_and_the_others_go_on() -> None:
    async def refuse_some(value: int) -> int:
        await asyncio.sleep(random.random() / 1000)
        if value in (3, 4, 9):
            raise ValueError(value)
        return value

    job = Job("skipping", on_error=Skip())
    numbers = job.source(KafkaSource("in", value=Json()))
    numbers.map_async(refuse_some, retries=1).sink(KafkaSink("out", value=Json()))
    with MemoryRun(job) as run:
        for number in range(10):
            run.send("in", number)
        run.checkpoint()
        assert [record.value for record in run.read("out")] == [0, 1, 2, 5, 6, 7, 8]
