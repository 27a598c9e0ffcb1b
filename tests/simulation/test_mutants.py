"""Each deliberate break of the protocol is noticed by the simulation: so that its silence means something."""

from __future__ import annotations

import pytest

from tests.simulation.mutants import MUTANTS, Mutant
from tests.simulation.mutants_in_flight import MUTANTS_IN_FLIGHT
from tests.simulation.mutants_of_broker import MUTANTS_OF_BROKER
from tests.simulation.mutants_of_files import MUTANTS_OF_FILES
from tests.simulation.mutants_of_global_commits import MUTANTS_OF_GLOBAL_COMMITS
from tests.simulation.mutants_of_graphs import MUTANTS_OF_GRAPHS
from tests.simulation.mutants_of_joins import MUTANTS_OF_JOINS
from tests.simulation.mutants_of_new_input import MUTANTS_OF_NEW_INPUT
from tests.simulation.mutants_of_records import MUTANTS_OF_RECORDS
from tests.simulation.mutants_of_stages import MUTANTS_OF_STAGES
from tests.simulation.mutants_of_store import MUTANTS_OF_STORE
from tests.simulation.mutants_of_subtask import MUTANTS_OF_SUBTASK
from tests.simulation.mutants_of_time import MUTANTS_OF_TIME
from tests.simulation.patches import replaced

pytestmark = pytest.mark.simulation

MISFITS = ("AttributeError", "TypeError", "NameError", "has no attribute", "positional argument")


ALL = (
    *MUTANTS,
    *MUTANTS_IN_FLIGHT,
    *MUTANTS_OF_BROKER,
    *MUTANTS_OF_SUBTASK,
    *MUTANTS_OF_GLOBAL_COMMITS,
    *MUTANTS_OF_GRAPHS,
    *MUTANTS_OF_FILES,
    *MUTANTS_OF_STORE,
    *MUTANTS_OF_NEW_INPUT,
    *MUTANTS_OF_RECORDS,
    *MUTANTS_OF_STAGES,
    *MUTANTS_OF_JOINS,
    *MUTANTS_OF_TIME,
)


@pytest.mark.parametrize("mutant", ALL, ids=str)
def test_a_break_of_the_protocol_is_caught(mutant: Mutant) -> None:
    with replaced():
        is_caught = any(caught(mutant, seed) for seed in range(mutant.seeds))
    assert is_caught, f"no seed noticed that {mutant.what}"


def caught(mutant: Mutant, seed: int) -> bool:
    """Whether a seed that goes well goes wrong with the break."""
    case = mutant.case(seed)
    with mutant.apply():
        violations = case.play().violations
    # A patch that no longer fits what it is put over breaks every run, and shows nothing.
    assert not any(misfit in violation for violation in violations for misfit in MISFITS), violations
    return bool(violations) and not case.play().violations
