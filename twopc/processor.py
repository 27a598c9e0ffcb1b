"""The user's part of `process`: a `Processor` with declared state; and the `Context` that its functions get."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from datetime import timedelta
from typing import Any, ClassVar, NoReturn, Protocol, Self

from twopc.duration import duration_ms
from twopc.errors import ConfigurationError
from twopc.record import Headers, Record
from twopc.serde import Serde, String, checked_state_serde
from twopc.state.forms import ListOf, MapOf, Timed

Produced = Record | Iterable[Record] | None
"""The results of a function of a processor, returned or yielded: none, one or many records."""


class State(ABC):
    """A state by key, declared on a class: its name is the attribute's, and what is stored belongs to that name.

    `serde` encodes what is kept. With `ttl`, a duration of event time such as "24h", what was written so long before
    the stream time is absent; what was written before any record had a timestamp stays.
    """

    def __init__(self, serde: Serde, *, ttl: str | timedelta | None = None) -> None:
        self.name = ""
        self.serde = checked_state_serde(f"the serde of a {type(self).__name__}", serde)
        try:
            self.ttl_ms = None if ttl is None else duration_ms(ttl)
        except ValueError as error:
            raise ConfigurationError(f"the ttl of a {type(self).__name__}: {error}") from error
        if self.ttl_ms == 0:
            raise ConfigurationError(f"the ttl of a {type(self).__name__} must be longer than nothing")

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, processor: object, owner: type | None = None) -> Self:
        # An operator that runs has put a state that is bound to keys into the processor, which comes before this one.
        return self

    @property
    @abstractmethod
    def stored_serde(self) -> Serde:
        """The serde of all of a key's state, with the times at which it was written where there is a ttl."""

    @property
    def _written_serde(self) -> Serde:
        """The serde of what is written at once: a value, an element, the value of an entry."""
        return self.serde if self.ttl_ms is None else Timed(self.serde)

    def _unbound(self) -> NoReturn:
        raise RuntimeError(f"state {self.name!r} is there while process or on_timer runs, and belongs to its key")


class ValueState(State):
    """One value by key."""

    @property
    def stored_serde(self) -> Serde:
        return self._written_serde

    def get(self, default: Any = None) -> Any:
        """Return the value, as the serde gives it back; the default where there is none."""
        self._unbound()

    def set(self, value: Any) -> None:
        """Keep this value. None is none: the same as `clear`."""
        self._unbound()

    def clear(self) -> None:
        """Forget the value."""
        self._unbound()


class ListState(State):
    """A list of values by key. None can't be in it, and an empty list is none.

    Each element is stored by itself: `add` looks at no other. A `ttl` is of each element; `set` writes all anew.
    """

    @property
    def stored_serde(self) -> Serde:
        return ListOf(self._written_serde)

    def get(self) -> list[Any]:
        """Return the values, oldest first; a list of the caller's own."""
        self._unbound()

    def add(self, value: Any) -> None:
        """Put a value behind the others."""
        self._unbound()

    def extend(self, values: Iterable[Any]) -> None:
        """Put values behind the others."""
        self._unbound()

    def set(self, values: Iterable[Any]) -> None:
        """Keep these values in place of the others."""
        self._unbound()

    def clear(self) -> None:
        """Forget all values."""
        self._unbound()


class MapState(State):
    """Values by a second key, encoded by the serde `key` (text unless said otherwise), for each key.

    None can't be in it, and an empty map is none. Each entry is stored by itself: `get`, `put`, `contains` and `remove`
    look at no other. A `ttl` is of each entry, from when it was put. Entries have the order of their encoded keys.
    """

    def __init__(self, serde: Serde, *, key: Serde | None = None, ttl: str | timedelta | None = None) -> None:
        super().__init__(serde, ttl=ttl)
        self.key_serde = checked_state_serde("the key of a MapState", String() if key is None else key)

    @property
    def stored_serde(self) -> Serde:
        return MapOf(self.key_serde, self._written_serde)

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the value under this key, the default where there is none."""
        self._unbound()

    def put(self, key: Any, value: Any) -> None:
        """Keep a value under this key."""
        self._unbound()

    def remove(self, key: Any) -> None:
        """Forget what is under this key; that there is nothing is fine."""
        self._unbound()

    def contains(self, key: Any) -> bool:
        """Whether there is a value under this key."""
        self._unbound()

    def keys(self) -> list[Any]:
        """Return the keys."""
        self._unbound()

    def items(self) -> list[tuple[Any, Any]]:
        """Return keys and values."""
        self._unbound()

    def clear(self) -> None:
        """Forget all values."""
        self._unbound()


class Timers(Protocol):
    """The timers of the key in hand."""

    def set(self, at: int) -> None: ...
    def delete(self, at: int) -> None: ...


class SideOutputs(Protocol):
    """The side outputs, for records beside those that are returned."""

    def put(self, name: str, record: Record) -> None: ...


class Context:
    """The context of a processor's call: what is known of its record, and what it can do beside returning records.

    The timestamp is in Unix milliseconds, None where the record has none, and that of the timer in `on_timer`. The
    stream time is the greatest timestamp that the operator has seen under this partition number, None before any.
    Topic, partition and offset are in `on_timer` those of the record that moved time.
    """

    __slots__ = (
        "_side_outputs",
        "_timers",
        "headers",
        "key",
        "offset",
        "partition",
        "stream_time",
        "timestamp",
        "topic",
    )

    key: Any
    timestamp: int | None
    headers: Headers | None
    topic: str
    partition: int
    offset: int
    stream_time: int | None
    _side_outputs: SideOutputs
    _timers: Timers

    def output(self, name: str, record: Record) -> None:
        """Put a record out at a side output that the class declares: `stream.side_output(name)` takes it."""
        self._side_outputs.put(name, record)

    def set_timer(self, at: int) -> None:
        """Have `on_timer` called for this key, once, when the stream time has reached `at`, in Unix milliseconds.

        A key has one timer of a time, however often it is set. One whose time has come already fires behind the record
        in hand. `on_timer` sets those behind its own time only.
        """
        self._timers.set(at)

    def delete_timer(self, at: int) -> None:
        """Have no timer of this key at this time; that there is none is fine."""
        self._timers.delete(at)


class Processor(ABC):
    """A function on records with state by key.

    States are declared on the class, `count = ValueState(Json(), ttl="24h")`, and read and written as `self.count`,
    where they belong to the key of the record in hand. Each subtask has a copy of the processor of its own, which keeps
    nothing else from record to record: other attributes are neither in checkpoints nor restored.

    `outputs` declares the names of the side outputs, `outputs = ("late",)`. A stream of the job must take each.
    """

    outputs: ClassVar[tuple[str, ...]] = ()

    def open(self) -> None:
        """Prepare what `process` needs beside its states: once in each subtask, in its copy, before the first record.

        States belong to a key, and can't be used here. What this raises ends the job.
        """

    def close(self) -> None:
        """Let go of what `open` has prepared, behind the last record of an attempt; not where the process is killed."""

    @abstractmethod
    def process(self, record: Record, context: Context) -> Produced:
        """Return or yield what becomes of a record: none, one or many records, made with `record.replace(...)`.

        A call that raises changes nothing, and what becomes of its record, the source's `on_error` says.
        """

    def on_timer(self, at: int, context: Context) -> Produced:
        """Return or yield what becomes of a key whose timer is due: as `process`.

        Timers of one partition number fire in the order of their times, when a record moves the stream time there, and
        before that record is processed. They are kept in checkpoints. A timer on which this raises is gone.
        """
        raise NotImplementedError

    @classmethod
    def declared_states(cls) -> dict[str, State]:
        """The states by name, those of base classes first."""
        states: dict[str, State] = {}
        for base in reversed(cls.__mro__):
            for name, declared in vars(base).items():
                states.pop(name, None)
                if isinstance(declared, State):
                    states[name] = declared
        return states
