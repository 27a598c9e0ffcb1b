"""The feed of a soak, which fills the input while the job runs, and the reader of the output while it grows."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import closing
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaException

from tests.counting.finished import mark_of
from tests.counting.numbered_input import NumberedInput
from tests.counting.transcript import Transcript
from tests.counting.verifier import Verifier
from tests.soak.follow import CaughtUp, follow
from twopc.errors import TwoPhaseCommitError
from twopc.testing.topics import Read, Write, produce

TICK_SECONDS = 0.1


class _Side:
    """Something that runs on a thread until it is done, or the context ends; `check` raises what ended it early."""

    def __init__(self) -> None:
        self._error: BaseException | None = None
        self._stopping = threading.Event()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._guarded, name=type(self).__name__)

    @property
    def done(self) -> bool:
        return self._done.is_set()

    def check(self) -> None:
        if self._error is not None:
            raise self._error

    def work(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stopping.set()
        self._thread.join()

    def _guarded(self) -> None:
        try:
            self.work()
            self._done.set()
        except (KafkaException, TwoPhaseCommitError) as error:
            self._error = error


class Feed(_Side):
    """Produces the input evenly over so many seconds."""

    def __init__(self, bootstrap_servers: str, topic: str, source: NumberedInput, seconds: float) -> None:
        super().__init__()
        self._bootstrap_servers = bootstrap_servers
        self._topic = topic
        self._source = source
        self._seconds = seconds

    def work(self) -> None:
        produce(self._bootstrap_servers, self._topic, self._paced())

    def _paced(self) -> Iterator[Write]:
        began, first = time.monotonic(), 0
        while first < self._source.records and not self._stopping.is_set():
            passed = (time.monotonic() - began) / self._seconds
            end = int(self._source.records * min(1.0, passed))
            yield from self._source.writes(first, end)
            first = end
            time.sleep(TICK_SECONDS)


class Reader(_Side):
    """Reads what is committed, and judges it at once; is done when it has seen as many records as the input has."""

    def __init__(self, bootstrap_servers: str, topic: str, partitions: int, source: NumberedInput) -> None:
        super().__init__()
        self.verifier = Verifier(source, lambda read: mark_of(source, read))
        self.transcript = Transcript()
        self._bootstrap_servers = bootstrap_servers
        self._topic = topic
        self._partitions = partitions
        self._records = source.records

    def work(self) -> None:
        with closing(follow(self._bootstrap_servers, self._topic, self._partitions)) as items:
            for item in items:
                if isinstance(item, Read):
                    self.verifier.see(item)
                    self.transcript.note(item)
                elif isinstance(item, CaughtUp):
                    self.verifier.caught_up(item.partition)
                elif self._stopping.is_set() or self.verifier.seen >= self._records:
                    return
