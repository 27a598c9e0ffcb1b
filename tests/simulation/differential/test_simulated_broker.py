"""The random sequences are worth playing: they reach what they are for, and a wrong answer does not pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.simulation.differential.documented import table, written
from tests.simulation.differential.observed import Description
from tests.simulation.differential.play import Note, Play, difference
from tests.simulation.differential.simulated_side import SimulatedSide
from tests.simulation.differential.steps import NAMES, End, Init, Step, Who, draw, shrink
from tests.simulation.transaction_tables import BUMPING_END_TXN, END_TXN_1, END_TXN_2, Asks, Code

SEEDS = range(500)


def test_they_reach_every_answer_to_end_txn_that_lasts_longer_than_a_moment() -> None:
    cells: set[tuple[object, ...]] = {*END_TXN_1, *END_TXN_2}
    reached = {cell for seed in SEEDS for cell in reached_cells(play(draw(seed)))}
    assert {cell for cell in cells - reached if not getattr(cell[0], "value", "").startswith("Prepare")} == set()


def test_they_meet_every_error_code_that_can_be_met() -> None:
    codes = {note.answer.code for seed in SEEDS for note in play(draw(seed)) if note.answer}
    busy = {Code.COORDINATOR_LOAD_IN_PROGRESS, Code.COORDINATOR_NOT_AVAILABLE, Code.NOT_COORDINATOR}
    elsewhere = {Code.NOT_ENOUGH_REPLICAS, Code.CONCURRENT_TRANSACTIONS, Code.TRANSACTIONAL_ID_NOT_FOUND}
    elsewhere |= {Code.UNKNOWN_SERVER_ERROR}
    assert set(Code) - codes == busy | elsewhere


def test_they_tell_a_broker_of_one_protocol_from_that_of_the_other() -> None:
    assert any(difference(play(draw(seed), protocol=1), play(draw(seed), protocol=2)) for seed in SEEDS)


def test_the_answers_stand_in_the_documentation() -> None:
    assert written() == table()


def test_a_sequence_that_fails_is_cut_down_to_the_steps_that_make_it_fail() -> None:
    needed = (Init(NAMES[0]), End(NAMES[0], Who(), commit=True, version=3))
    steps: list[Step] = [*draw(1), needed[0], *draw(2), needed[1], *draw(3)]
    assert shrink(steps, lambda kept: needed[0] in kept and needed[1] in kept) in (needed, needed[::-1])


def play(steps: Sequence[Step], protocol: int = 2) -> list[Note]:
    return Play(SimulatedSide(bumps=protocol == 2)).run(steps)


def reached_cells(notes: Sequence[Note]) -> Iterator[tuple[object, ...]]:
    before: dict[str, Description] = {}
    for note in notes:
        if isinstance(note.step, str) or note.description is None:
            continue
        held = before.get(note.step.name)
        before[note.step.name] = note.description
        if isinstance(note.step, End) and held is not None and note.asker is not None:
            relation = relation_of(note.asker[1] - held.producer[1]) if note.asker[0] == held.producer[0] else None
            yield from cells(note.step, held, relation)


def relation_of(difference_of_epochs: int) -> Asks | None:
    return {0: Asks.AS_CURRENT, -1: Asks.AS_BEFORE}.get(difference_of_epochs)


def cells(step: End, held: Description, relation: Asks | None) -> Iterator[tuple[object, ...]]:
    state = next(cell[0] for cell in END_TXN_1 if cell[0].value == held.state)
    if step.version >= BUMPING_END_TXN and relation is not None:
        yield state, step.commit, relation
    elif step.version < BUMPING_END_TXN and relation is Asks.AS_CURRENT:
        yield state, step.commit
