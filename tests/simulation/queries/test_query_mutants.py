"""Each deliberate break of a query is noticed by some play: so that their silence means something."""

from __future__ import annotations

from functools import partial
from itertools import product

import pytest

from tests.simulation.queries.driver import Driver, FormatDriver
from tests.simulation.queries.mutants import MUTANTS, MUTANTS_OF_EXPIRY, MUTANTS_OF_SILENCE, QueryMutant
from tests.simulation.queries.plays import drawn_and_finished, is_exact, is_exact_or_told, plays

pytestmark = pytest.mark.simulation

SEEDS = range(3_000)
KINDS = (Driver, FormatDriver)


def broken(mutants: tuple[QueryMutant, ...]) -> pytest.MarkDecorator:
    pairs = [(mutant, kind) for mutant, kind in product(mutants, KINDS) if kind in mutant.kinds]
    return pytest.mark.parametrize(("mutant", "kind"), pairs, ids=lambda each: getattr(each, "__name__", str(each)))


@broken(MUTANTS)
def test_a_break_is_noticed_although_all_is_answered(mutant: QueryMutant, kind: type[Driver]) -> None:
    with mutant.applied(kind) as make:
        assert not all(is_exact(play) for play in plays(make, SEEDS))


@broken(MUTANTS_OF_SILENCE)
def test_a_break_is_noticed_where_answers_are_lost(mutant: QueryMutant, kind: type[Driver]) -> None:
    with mutant.applied(kind) as make:
        assert not all(is_exact(partial(drawn_and_finished, make, seed, silent=True)) for seed in SEEDS)


@broken(MUTANTS_OF_EXPIRY)
def test_a_break_is_noticed_where_transactions_expire(mutant: QueryMutant, kind: type[Driver]) -> None:
    with mutant.applied(kind) as make:
        assert not all(is_exact_or_told(make, seed) for seed in SEEDS)
