"""A checkpoint store of which one call that writes fails: it is not done, or it is done and its answer is lost."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from enum import Enum
from pathlib import Path

from twopc.storage.store import CheckpointStore, Content, OpenObject, StoredObject


class Failure(Enum):
    REFUSED = "refused"
    ANSWER_LOST = "answer lost"


class Strike:
    """Counts the calls that write, in all parts of a store; the one with the number `at` fails."""

    def __init__(self, failure: Failure, at: int) -> None:
        self.calls = 0
        self._failure = failure
        self._at = at

    def before(self) -> None:
        self.calls += 1
        self._raise_if(Failure.REFUSED)

    def after(self) -> None:
        self._raise_if(Failure.ANSWER_LOST)

    def _raise_if(self, failure: Failure) -> None:
        if self._failure is failure and self.calls == self._at:
            raise OSError(5, f"simulated: {failure.value}")


class FaultyStore(CheckpointStore):
    """The store that is given, struck."""

    def __init__(self, store: CheckpointStore, strike: Strike) -> None:
        self._store = store
        self._strike = strike

    def within(self, part: str) -> FaultyStore:
        return FaultyStore(self._store.within(part), self._strike)

    def establish(self) -> None:
        self._store.establish()

    def create_once(self, name: str, data: bytes) -> None:
        self._strike.before()
        self._store.create_once(name, data)
        self._strike.after()

    def put(self, files: Iterable[tuple[str, Content]]) -> list[StoredObject]:
        stored = []
        for file in files:
            self._strike.before()
            stored += self._store.put([file])
            self._strike.after()
        return stored

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            self._strike.before()
            self._store.delete([name])
            self._strike.after()

    def get(self, name: str) -> bytes:
        return self._store.get(name)

    def open(self, name: str) -> AbstractContextManager[OpenObject]:
        return self._store.open(name)

    def bring(self, name: str, target: Path) -> None:
        self._store.bring(name, target)

    def names(self, prefix: str = "") -> list[str]:
        return self._store.names(prefix)

    def parts(self) -> list[str]:
        return self._store.parts()

    def place(self, name: str = "") -> str:
        return self._store.place(name)

    @property
    def identity(self) -> str:
        return self._store.identity
