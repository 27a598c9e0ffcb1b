"""Each deliberate break of the protocol is noticed by the simulation: so that its silence means something."""

from __future__ import annotations

import pytest

from tests.simulation.every_mutant import ALL, noticing
from tests.simulation.mutants import Mutant

pytestmark = pytest.mark.simulation


@pytest.mark.parametrize("mutant", ALL, ids=str)
def test_a_break_of_the_protocol_is_caught(mutant: Mutant) -> None:
    assert noticing(mutant, 1), f"no seed noticed that {mutant.what}"


def test_no_two_breaks_have_one_name() -> None:
    assert len({mutant.what for mutant in ALL}) == len(ALL)
