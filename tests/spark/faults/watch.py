"""Watches a topic as a `read_committed` reader of its own: what came, and when."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import closing
from itertools import pairwise

from tests.soak.follow import follow
from twopc.faults.process import await_true
from twopc.testing.topics import Read


class OutputWatch:
    """A thread that reads until its context is left. A record of the output bears the time when its input was given."""

    def __init__(self, servers: str, topic: str, partitions: int) -> None:
        self._where = (servers, topic, partitions)
        self._ended = threading.Event()
        self._arrivals: list[float] = []
        self._newest_given_ms = 0
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def __enter__(self) -> OutputWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def seconds_to_output_given_after(self, moment: float, seconds: float, alive: Callable[[], bool]) -> float:
        """Wait for output of input that was given after a moment (time.time()); return how long after it that came.

        `alive` raises where nothing will come any more.
        """

        def there() -> bool:
            alive()
            if self._failure is not None:
                raise self._failure
            return self._newest_given_ms > moment * 1000

        await_true(there, "no output of input that was given since", seconds)
        return time.time() - moment

    def longest_silence(self, since: float) -> float:
        """Return the longest time without new output from a moment on, in seconds."""
        arrivals = [since, *(each for each in self._arrivals if each > since)]
        return max((after - before for before, after in pairwise(arrivals)), default=0.0)

    def count(self) -> int:
        """How many records have come."""
        return len(self._arrivals)

    def _run(self) -> None:
        try:
            with closing(follow(*self._where)) as records:
                for record in records:
                    if isinstance(record, Read):
                        self._arrivals.append(time.time())
                        self._newest_given_ms = max(self._newest_given_ms, record.timestamp)
                    if self._ended.is_set() and record is None:
                        return
        except BaseException as error:  # noqa: BLE001  the test's own thread raises it
            self._failure = error
