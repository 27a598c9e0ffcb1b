"""All mutants, and which seeds notice each: these are played first, for most others see nothing of it.

The seeds are in `every_mutant.json`. A change of the simulation may make them others; then a mutant is looked for among
all of its seeds again, which takes longer, until they are found anew:

    python -m tests.simulation.every_mutant
"""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

from tests.simulation.mutants import MUTANTS, Mutant
from tests.simulation.mutants_in_flight import MUTANTS_IN_FLIGHT
from tests.simulation.mutants_of_broker import MUTANTS_OF_BROKER
from tests.simulation.mutants_of_coordinator import MUTANTS_OF_COORDINATOR
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

ALL = (
    *MUTANTS,
    *MUTANTS_IN_FLIGHT,
    *MUTANTS_OF_BROKER,
    *MUTANTS_OF_COORDINATOR,
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

FOUND = Path(__file__).with_suffix(".json")
KEPT = 2
"""How many seeds of each mutant: some notice it no more after a change of what the simulation does."""

MISFITS = ("AttributeError", "TypeError", "NameError", "has no attribute", "positional argument")

NOTICED_BY: Mapping[str, list[int]] = json.loads(FOUND.read_text()) if FOUND.exists() else {}


def is_caught(mutant: Mutant, seed: int) -> bool:
    """Whether a seed that goes well goes wrong with the break."""
    case = mutant.case(seed)
    with mutant.apply():
        violations = case.play().violations
    # A patch that no longer fits what it is put over breaks every run, and shows nothing.
    assert not any(misfit in violation for violation in violations for misfit in MISFITS), violations
    return bool(violations) and not case.play().violations


def seeds_of(mutant: Mutant) -> Iterator[int]:
    """Yield those that are known to notice it, then all others."""
    known = NOTICED_BY.get(mutant.what, [])
    yield from known
    yield from (seed for seed in range(mutant.seeds) if seed not in known)


def noticing(mutant: Mutant, most: int) -> list[int]:
    """Return the first so many seeds that notice a mutant."""
    with replaced():
        return list(islice((seed for seed in seeds_of(mutant) if is_caught(mutant, seed)), most))


def found(number: int) -> tuple[str, list[int]]:
    """Return a mutant's name and the seeds to keep; by its number, for what breaks can't go to another process."""
    mutant = ALL[number]
    return mutant.what, sorted(noticing(mutant, KEPT))


def main() -> None:
    """Store the seeds of every mutant: those that still notice it, and others for those that don't."""
    with multiprocessing.get_context("spawn").Pool() as pool:
        seeds = dict(pool.imap_unordered(found, range(len(ALL))))
    lines = ",\n".join(f"  {json.dumps(what)}: {seeds[what]}" for what in sorted(seeds))
    FOUND.write_text(f"{{\n{lines}\n}}\n")


if __name__ == "__main__":
    main()
