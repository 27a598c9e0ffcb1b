"""The serdes of one source or sink as they work: for each topic a key's and a value's, opened when it is first met.

Most serdes work for every topic alike, and then one pair serves them all: a batch is one column, whatever its topics.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, NamedTuple, Self

from twopc.serde import Serde, SerdeContext


@dataclass(frozen=True, repr=False)
class OfTopic(Serde):
    """A serde that works for a topic as if it was another one: what stands in for a topic holds the same records."""

    serde: Serde
    topic: str

    must_be_opened = True

    def open(self, context: SerdeContext) -> Serde:
        return self.serde.open(replace(context, topic=self.topic))

    def deserialize(self, data: bytes | None) -> Any:
        return self.serde.deserialize(data)

    def serialize(self, value: Any) -> bytes | None:
        return self.serde.serialize(value)

    def __repr__(self) -> str:
        return repr(self.serde)


class SerdePair(NamedTuple):
    """The serdes of a topic's keys and of its values."""

    key: Serde
    value: Serde


class TopicSerdes:
    """The pair of each topic; `topics` are all there will be, if that is known. Close it, by leaving its context."""

    def __init__(self, key: Serde, value: Serde, topics: Iterable[str] = (), *, writing: bool = False) -> None:
        self._key = key
        self._value = value
        self._writing = writing
        self._by_topic: dict[str, SerdePair] = {}
        self._pairs: dict[tuple[int, int], SerdePair] = {}
        self._opened: dict[int, Serde] = {}
        try:
            for topic in topics:
                self.of(topic)
            self._all_known = bool(self._by_topic)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def of(self, topic: str) -> SerdePair:
        """Return the pair of a topic: one object for all topics with the same two serdes."""
        pair = self._by_topic.get(topic)
        if pair is None:
            key, value = (
                self._open(serde, SerdeContext(topic, is_key, self._writing))
                for serde, is_key in ((self._key, True), (self._value, False))
            )
            pair = self._by_topic[topic] = self._pairs.setdefault((id(key), id(value)), SerdePair(key, value))
        return pair

    def runs(self, topics: Iterable[str]) -> Iterator[tuple[SerdePair, range]]:
        """Yield each run of topics that have one pair, with the indices of the run."""
        at = 0
        for _, run in groupby(map(self.of, topics), key=id):
            pairs = list(run)
            yield pairs[0], range(at, at + len(pairs))
            at += len(pairs)

    @property
    def common(self) -> SerdePair | None:
        """The pair of all topics, where they are known; None if they have several."""
        return next(iter(self._pairs.values())) if self._all_known and len(self._pairs) == 1 else None

    def close(self) -> None:
        """Let go of every serde."""
        with ExitStack() as closing:
            for serde in self._opened.values():
                closing.callback(serde.close)
        self._opened, self._pairs, self._by_topic = {}, {}, {}

    def _open(self, serde: Serde, context: SerdeContext) -> Serde:
        opened = serde.open(context)
        return self._opened.setdefault(id(opened), opened)
