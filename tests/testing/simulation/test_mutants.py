"""Each deliberate break of the protocol is noticed by the simulation: so that its silence means something."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.testing.simulation.mutants import MUTANTS, Mutant
from twopc.testing.simulation.faults import draw
from twopc.testing.simulation.run import simulate

pytestmark = pytest.mark.simulation


@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_a_break_of_the_protocol_is_caught(mutant: Mutant) -> None:
    assert any(caught(mutant, seed) for seed in range(mutant.seeds)), f"no seed noticed that {mutant.what}"


def caught(mutant: Mutant, seed: int) -> bool:
    """Whether a seed that goes well goes wrong with the break."""
    faults = replace(draw(seed, timeouts=mutant.timeouts), **mutant.faults)
    with mutant.apply():
        violations = simulate(seed, faults=faults, keeps_trace=False).violations
    return bool(violations) and not simulate(seed, faults=faults, keeps_trace=False).violations
