"""What a simulation replaces in production modules is all that it has to."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

import coordinator
import coordinator.ledger
import twopc.driver
import twopc.kafka
import twopc.protocol.ledger_state
import twopc.runtime
import twopc.storage.files
from tests.simulation.faults import draw
from tests.simulation.patches import CRASHING, DECODED_EVERY, playing
from tests.simulation.world import World
from twopc.errors import CheckpointCorrupted
from twopc.faults import points as crashpoints
from twopc.protocol.checkpoints import CheckpointKind
from twopc.protocol.ids import AttemptId, CheckpointId
from twopc.protocol.ledger_facts import CheckpointReserved
from twopc.protocol.ledger_place import NOTHING_BEFORE, LedgerPlace

FACT = CheckpointReserved(CheckpointId(1), AttemptId(1), CheckpointKind.PERIODIC)
PLACE = LedgerPlace("job", 1, NOTHING_BEFORE, "me")


@pytest.mark.parametrize(
    "package", [coordinator, twopc.driver, twopc.kafka, twopc.runtime], ids=lambda each: each.__name__
)
def test_every_module_that_says_which_place_it_has_come_to_says_so_to_the_world_of_the_run(package: object) -> None:
    names = [each.name for each in pkgutil.iter_modules(package.__path__, f"{package.__name__}.")]  # type: ignore[attr-defined]
    modules = [importlib.import_module(name) for name in names if not name.endswith("__main__")]
    saying = [module for module in modules if getattr(module, "reached", None) is crashpoints.reached]
    assert [module.__name__ for module in saying if module not in CRASHING] == []


def encoded() -> bytes:
    """As the ledger of the run that is being played does it."""
    data: bytes = vars(coordinator.ledger)["encode_entry"](FACT, PLACE)
    return data


def test_the_bytes_of_an_entry_tell_which_one_it_is_and_any_others_are_decoded() -> None:
    with playing(World(1, draw(1))):
        data = encoded()
        assert twopc.protocol.ledger_state.decode_entry(data, "entry")[1] is FACT
        with pytest.raises(CheckpointCorrupted, match="entry"):
            twopc.protocol.ledger_state.decode_entry(data.replace(b"periodic", b"periodix"), "entry")


def test_in_one_run_of_several_every_entry_is_decoded() -> None:
    with playing(World(DECODED_EVERY, draw(DECODED_EVERY))):
        data = encoded()
        place, entry = twopc.protocol.ledger_state.decode_entry(data, "entry")
    assert (place, entry) == (PLACE, FACT)
    assert entry is not FACT


def test_an_entry_of_an_earlier_run_is_decoded() -> None:
    with playing(World(1, draw(1))):
        data = encoded()
    with playing(World(2, draw(2))):
        assert twopc.protocol.ledger_state.decode_entry(data, "entry")[1] is not FACT
