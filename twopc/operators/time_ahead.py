"""Stream time that a checkpoint has further ahead of the clock than records may move it: told, or set back.

A run that allowed more has left it so; or a drain, which lets time pass for timers that are far off. Records move such
a time no more: windows up to it are late, and what they write lives until then.

Set back, time goes on from the clock, and all state is kept. What was written meanwhile counts as written at the clock.
What time has done on its way stays done: timers have fired, windows are told; one that was told too early is told once
more, of what comes since.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from twopc.clock import date
from twopc.operators.bound_state import expiry_of, parted_due
from twopc.operators.node import Node
from twopc.operators.process_step import Process
from twopc.operators.time_queue import entry_of, parted_entry
from twopc.state.backend import StateBackend
from twopc.state.forms import content, time_of, timed
from twopc.state.keyed import KeyedState, keyed_states
from twopc.state.layout import EXPIRIES, STREAM_TIME, TOLD, StateName

log = logging.getLogger(__name__)

ENTRIES_AT_ONCE = 4_096
_KEY = b""


class Bound(NamedTuple):
    """The clock, and the latest time to which records move stream time; Unix milliseconds."""

    now: int
    latest: int


def say_times_ahead(backend: StateBackend, bound: Bound) -> None:
    """Warn of each operator that has a stream time ahead."""
    for operator, (numbers, time) in _of_operators(_ahead(backend, bound)).items():
        log.warning(
            "the stream time of %r is up to %s, under %s: further ahead of the clock than max_time_ahead. Until then "
            "records move no time, what they write lives on, and windows are late. --set-time-back sets it to the "
            "clock, and keeps the state",
            operator,
            date(time),
            numbers,
        )


def set_time_back(nodes: Iterable[Node], backend: StateBackend, bound: Bound) -> None:
    """Set every stream time that is ahead to the clock, and so the time of each value that was written then."""
    store, ahead = KeyedState(backend), list(_ahead(backend, bound))
    for state, number, _ in ahead:
        store.put_many(state, number, [_KEY], [b"%d" % bound.now])
    for operator, (numbers, time) in _of_operators(ahead).items():
        text = "the stream time of %r, up to %s under %s, is set back to %s"
        log.warning(text, operator, date(time), numbers, date(bound.now))
    lives = {node.id: _lives(node.operation) for node in nodes if isinstance(node.operation, Process)}
    for state, number in list(keyed_states(backend)):
        if state.name == EXPIRIES and state.operator in lives:
            _Renewal(store, state, number, lives[state.operator], bound).run()


def _of_operators(ahead: Iterable[tuple[StateName, int, int]]) -> dict[str, tuple[str, int]]:
    """Return by operator under how many partition numbers its stream time is ahead, in words, and the greatest."""
    times: dict[str, list[int]] = {}
    for state, _, time in ahead:
        if state.name == STREAM_TIME:
            times.setdefault(state.operator, []).append(time)
    return {
        operator: (f"{len(each)} partition number" + "s" * (len(each) > 1), max(each))
        for operator, each in times.items()
    }


def _ahead(backend: StateBackend, bound: Bound) -> Iterator[tuple[StateName, int, int]]:
    store = KeyedState(backend)
    for state, number in keyed_states(backend):
        if state.name in (STREAM_TIME, TOLD):
            (stored,) = store.get_many(state, number, [_KEY])
            if stored is not None and int(stored) > bound.latest:
                yield state, number, int(stored)


def _lives(step: Process) -> dict[str, int]:
    declared = type(step.processor).declared_states()
    return {name: state.ttl_ms for name, state in declared.items() if state.ttl_ms is not None}


@dataclass(frozen=True, slots=True)
class _Renewal:
    """Of one operator and partition number: what was written ahead lives as if it were written by the clock."""

    store: KeyedState
    expiries: StateName
    number: int
    lives: Mapping[str, int]
    bound: Bound

    def run(self) -> None:
        # Nothing expires before the time at which it was written.
        start = entry_of(self.bound.latest, b"")
        while entries := [
            key for key, _ in islice(self.store.scan(self.expiries, self.number, start), ENTRIES_AT_ONCE)
        ]:
            for entry in entries:
                self._renew(entry)
            start = entries[-1] + b"\0"

    def _renew(self, entry: bytes) -> None:
        due = parted_entry(entry)[1]
        name, address = parted_due(due)
        state, ttl_ms = StateName(self.expiries.operator, name), self.lives.get(name)
        if ttl_ms is None:
            return
        (stored,) = self.store.get_many(state, self.number, [address])
        written = None if stored is None else time_of(stored)
        if stored is None or written is None or written <= self.bound.latest:
            return
        self.store.put_many(state, self.number, [address], [timed(self.bound.now, content(stored))])
        moved: dict[bytes, bytes | None] = {entry: None}
        if (expiry := expiry_of(self.bound.now, ttl_ms)) is not None:
            moved[entry_of(expiry, due)] = b""
        self.store.put_many(self.expiries, self.number, list(moved), list(moved.values()))
