"""The records of an example of two inputs, and what their join tells at each of them, both as text.

A record is the letter of its input and its time in milliseconds, of key k: `a10`; that is its value, too. One of
another key is `a10:j`, one with a value `a10=x`, a tombstone `a10=`. A result is told at the record that brings it
about: `b5 -> (a10,b5)@10` has both values and the timestamp, and `-` where there is none.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tests.operators.kit import Node, put_through
from twopc import Json
from twopc.operators import Dataflow, JoinTable, KeepTable
from twopc.operators.as_of_join import join_as_of
from twopc.operators.how import HowBoth
from twopc.operators.sink_output import OnError, fail
from twopc.operators.stream_join_step import JoinStreams
from twopc.operators.table_join import join_tables
from twopc.testing.rows import InputRow, batch_of
from twopc.testing.states import DictStore

_RECORD = re.compile(r"([a-z])(\d+)(?::(\w+))?(=(\w*))?")


class JoinExample:
    """A join of the inputs that two letters name."""

    def __init__(self, make: Callable[[DictStore], Dataflow], store: DictStore | None = None) -> None:
        self.store = store or DictStore()
        self._flow = make(self.store)

    def put(self, records: str) -> list[str]:
        """Return what is told at each record; what is told by the same is in one line."""
        lines = []
        for record in records.split():
            match = _RECORD.fullmatch(record)
            assert match is not None, record
            name, at, key, is_given, value = match.groups()
            shown = (value or None) if is_given else f"{name}{at}"
            row = InputRow(shown, key_=key or "k", timestamp_=int(at))
            told = [
                f"{_shown(values)}@{time}"
                for output in put_through(self._flow, name, batch_of([row]))
                for values, time in zip(output.batch.values, output.batch.timestamps, strict=True)
            ]
            if told:
                lines.append(f"{record} -> {', '.join(told)}")
        self._flow.write_back()
        return lines


def _shown(values: list[str | None] | str | None) -> str:
    return f"({','.join(each or '-' for each in values)})" if isinstance(values, list) else str(values)


def _pair(one: Any, other: Any) -> list[Any]:
    return [one, other]


def streams(how: HowBoth = "inner", grace_ms: int = 0, store: DictStore | None = None) -> JoinExample:
    """Streams `a` and `b`, within five milliseconds."""
    join = JoinStreams(_pair, how, 5, grace_ms, "join", (Json(), Json()))
    nodes = [Node("a"), Node("b"), Node("join", ("a", "b"), join), Node("out", ("join",))]
    return JoinExample(lambda held: Dataflow(nodes, held, fail), store)


def as_of(
    keep_ms: int, how: str = "left", grace_ms: int = 0, *, store: DictStore | None = None, on_error: OnError = fail
) -> JoinExample:
    """A stream `o` and a table `c`, as of the time of what comes in the stream."""
    join = join_as_of(_pair, how, "join", (keep_ms, grace_ms), (Json(), Json()))
    nodes = [Node("o"), Node("c"), Node("join", ("o", "c"), join), Node("out", ("join",))]
    return JoinExample(lambda held: Dataflow(nodes, held, on_error), store)


def tables(how: str) -> JoinExample:
    """Tables `l` and `r`."""
    join = join_tables(lambda left, right: (left or "-") + (right or "-"), how, "join", (Json(), Json()))
    nodes = [Node("l"), Node("r"), Node("join", ("l", "r"), join), Node("out", ("join",))]
    return JoinExample(lambda held: Dataflow(nodes, held, fail))


def table(how: Any = "left", store: DictStore | None = None) -> JoinExample:
    """A stream `o` and a table `c`."""
    nodes = [
        Node("o"),
        Node("c"),
        Node("table", ("c",), KeepTable("table", Json())),
        Node("join", ("o", "table"), JoinTable(_pair, "table", how)),
        Node("out", ("join",)),
    ]
    return JoinExample(lambda held: Dataflow(nodes, held, fail), store)
