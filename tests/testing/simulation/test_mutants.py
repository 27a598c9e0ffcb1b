"""Each deliberate break of the protocol is noticed by the simulation: so that its silence means something."""

from __future__ import annotations

import pytest

from tests.testing.simulation.mutants import MUTANTS, Mutant
from twopc.testing.simulation.run import simulate


@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_a_break_of_the_protocol_is_caught(mutant: Mutant) -> None:
    with mutant.apply():
        caught = any(
            simulate(seed, timeouts=mutant.timeouts, keeps_trace=False).violations for seed in range(mutant.seeds)
        )
    assert caught, f"no seed below {mutant.seeds} noticed that {mutant.what}"
