"""The states that a processor declares, each kind where the operator runs."""

from __future__ import annotations

from typing import Any

from twopc.errors import ConfigurationError
from twopc.operators.bound_entries import BoundListState, BoundMapState
from twopc.operators.bound_state import BoundState, Call, decoded, encoded
from twopc.operators.versions import BoundVersions, Versions
from twopc.operators.waiting_records import BoundWaitingRecords, WaitingRecords
from twopc.operators.write_back_cache import WriteBackCache
from twopc.processor import ListState, MapState, State, ValueState


class BoundValueState(BoundState, ValueState):
    """One value by key, at the address of the key itself."""

    def prefetch(self, partition: int, keys: list[bytes]) -> None:
        self.cache.fetch(partition, keys)

    def get(self, default: Any = None) -> Any:
        value = decoded(self.name, self.serde, self._load(self._key_in_hand()))
        return default if value is None else value

    def set(self, value: Any) -> None:
        self._change(self._key_in_hand(), encoded(self.name, self.serde, value))

    def clear(self) -> None:
        self._change(self._key_in_hand(), None)


def bound(declared: State, cache: WriteBackCache, call: Call) -> BoundState:
    """Return what stands for a declared state where the operator runs."""
    match declared:
        case ValueState():
            return BoundValueState(declared, cache, call)
        case WaitingRecords():
            return BoundWaitingRecords(declared, cache, call)
        case Versions():
            return BoundVersions(declared, cache, call)
        case ListState():
            return BoundListState(declared, cache, call)
        case MapState():
            return BoundMapState(declared, cache, call)
        case _:
            raise ConfigurationError(f"state {declared.name!r} is a {type(declared).__name__}, which no operator knows")
