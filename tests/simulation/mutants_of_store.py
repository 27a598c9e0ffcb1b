"""Breaks of what becomes of a create whose answer was lost: it was done, and its creator doesn't know."""

from __future__ import annotations

from typing import Any

from coordinator.ledger import Ledger
from tests.simulation.mutants import Mutant, instead
from twopc.protocol.layout import entry_path
from twopc.storage import files
from twopc.storage.local import LocalStore
from twopc.storage.stored_ledger import entry_numbers

_LOST = {"store_answer_lost": 0.3, "second_coordinator_every_ms": 400, "fault_phase_ms": 2_000}


def _not_read_back(store: Any, name: str, data: bytes) -> None:
    folder = store._make_folder(name)
    files.create_once(store.root / name, data)
    store._make_durable(folder, store.root / name)
    twin = store._twin(name)
    if twin is not None:
        files.link_again(store.root / name, twin)


def _not_compared(ledger: Any, number: int) -> bool:
    if max(entry_numbers(ledger._store), default=number) != number:
        return False
    ledger._store.delete([entry_path(number)])
    return True


def _never(ledger: Any, number: int) -> bool:
    """The entry stays, and its number is taken."""
    return False


def _only_at_once(ledger: Any, number: int, data: bytes) -> None:
    """Remember an entry that was given up for one more try, as if the store were back by then."""
    given_up, ledger._given_up = getattr(ledger, "_given_up", None), data
    create_once = ledger._store.create_once
    try:
        create_once(entry_path(number), data)
    except FileExistsError as error:
        if ledger._store.get(entry_path(number)) != given_up or not ledger._takes_back(number):
            raise ledger._fenced("an entry") from error
        create_once(entry_path(number), data)
    ledger._given_up = None


MUTANTS_OF_STORE = (
    Mutant("a creator believes that it lost to itself", instead(LocalStore, "create_once", _not_read_back), _LOST, 500),
    Mutant("an entry in doubt is never taken back", instead(Ledger, "_takes_back", _never), _LOST, 500),
    Mutant("an entry in doubt is known for one try only", instead(Ledger, "_create", _only_at_once), _LOST, 500),
    Mutant(
        "an entry in doubt is taken back though it is another's",
        instead(Ledger, "_takes_back", _not_compared),
        _LOST | {"disk_full": 0.1},
        5_000,
    ),
)
