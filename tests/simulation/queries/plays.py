"""Plays of a query: who comes, dies and wakes when; and whether readers saw every row once in the end."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product

from tests.simulation.queries.driver import Driver, Fate
from tests.simulation.queries.world import PARTITIONS, Session, Silence, World
from twopc.errors import TransactionLost

PIECES = 40
"""More than a driver has, of both batches."""

STARTS = 5
NO_ANSWERS = (Silence.LOST, Silence.ANSWER_LOST)

MakeDriver = Callable[..., Driver]
Play = Callable[[], World]


def finish(world: World, make: MakeDriver) -> World:
    """Start the query again until it has come to its end, as a person does."""
    error = finished(world, make)
    if error is not None:
        raise error
    return world


def finished(world: World, make: MakeDriver) -> Exception | None:
    """Do so; return what keeps the query from its end."""
    error: Exception | None = None
    for _ in range(STARTS):
        last = make(world)
        last.to_the_end()
        error = last.error
        if error is None:
            break
    return error


def killed_twice(make: MakeDriver, first: int, second: int) -> World:
    """Two drivers die one after the other, each with tasks that were tried twice."""
    world = World()
    for pieces in (first, second):
        driver = make(world, Fate(tries=2))
        driver.go_on(pieces)
        driver.kill()
    return finish(world, make)


def met(make: MakeDriver, first: int, second: int) -> World:
    """One driver is held up, another one comes, both go on."""
    world = World()
    sleeper, other = make(world), make(world)
    sleeper.go_on(first)
    other.go_on(second)
    sleeper.to_the_end()
    other.to_the_end()
    return finish(world, make)


def woken(make: MakeDriver, first: int, second: int) -> World:
    """One driver is killed, another comes to its end; tasks that were taken for dead wake when it has gone so far."""
    pieces = 0

    def wakes() -> bool:
        nonlocal pieces
        pieces += 1
        return pieces > first + second

    world = World(wakes=wakes)
    driver = make(world, Fate(tries=2, sleeps=True))
    driver.go_on(first)
    driver.kill()
    return finish(world, make)


def expired(make: MakeDriver, pieces: int) -> World:
    """The first transaction of a batch is aborted by its time-out, when nothing is visible of it."""
    world = World()
    driver = make(world)
    driver.go_on(pieces)
    if not world.brokers.visible() and world.brokers.transactions:
        world.brokers.expire(next(iter(world.brokers.transactions.values())).id)
    driver.to_the_end()
    return finish(world, make)


def without_planner(make: MakeDriver, pieces: int) -> World:
    """What commits dies, Spark says that the batch failed, and the query is started again."""
    world = World()
    make(world, Fate(planner_pieces=pieces + 1)).to_the_end()
    return finish(world, make)


def in_one_session(make: MakeDriver, seed: int) -> World:
    """A driver sleeps, while a query that meets it is started again in its session, which has the same workers."""
    dice, world = random.Random(seed), World(batches=3)
    world.brokers.are_slow = lambda: True
    session = Session(world)
    first = make(world, session=session)
    first.go_on(dice.randrange(PIECES))
    sleeper = make(world)
    sleeper.go_on(dice.randrange(PIECES))
    first.to_the_end()
    again = make(world, session=session)
    again.go_on(dice.randrange(PIECES))
    sleeper.to_the_end()
    again.to_the_end()
    return finish(world, make)


def drawn(make: MakeDriver, seed: int, *, silent: bool = False, expire: bool = False) -> World:
    """Up to four drivers in any order, each killed at any moment, or with tasks that fail, die, or sleep.

    silent: some requests or their answers are lost. expire: what is open may be aborted by its time-out.
    The query is to be started again behind it.
    """
    dice, world = random.Random(seed), World()
    world.brokers.are_slow = lambda: dice.random() < 0.3
    world.wakes = lambda: dice.random() < 0.05
    if silent:
        world.silence = lambda: dice.choice(NO_ANSWERS) if dice.random() < 0.05 else Silence.NONE
    drivers = [make(world, _fate(dice))]
    for _ in range(dice.randrange(10, 120)):
        if len(drivers) < 4 and (drivers[-1].ended or dice.random() < 0.1):
            stopped = [each.session for each in drivers if each.error is not None]
            drivers.append(make(world, _fate(dice), dice.choice([None, *stopped])))
        chosen = dice.choice(drivers)
        if dice.random() < 0.03:
            chosen.kill()
        chosen.go_on(dice.randrange(1, 12))
        opened = world.brokers.open_ids()
        if expire and dice.random() < 0.1 and opened:
            world.brokers.expire(dice.choice(opened))
    world.silence = lambda: Silence.NONE
    for driver in drivers:
        driver.to_the_end()
    return world


def _fate(dice: random.Random) -> Fate:
    return Fate(
        tries=dice.choice((1, 2)),
        sleeps=dice.random() < 0.3,
        failing=dice.randrange(2) if dice.random() < 0.2 else None,
        planner_pieces=dice.randrange(1, 30) if dice.random() < 0.3 else None,
    )


def drawn_and_finished(make: MakeDriver, seed: int, *, silent: bool = False) -> World:
    return finish(drawn(make, seed, silent=silent), make)


def is_exact_or_told(make: MakeDriver, seed: int) -> bool:
    """Whether every row is visible once, or the query has stopped at a batch of which a part is lost for good."""
    world = drawn(make, seed, silent=True, expire=True)
    error, visible = finished(world, make), world.brokers.visible()
    if error is None:
        return world.is_exact
    of_last = [partition for batch, partition in visible if batch == world.committed_batches]
    before = [each for each in world.everything if each[0] < world.committed_batches]
    is_told = isinstance(error, TransactionLost) and 0 < len(of_last) < PARTITIONS
    return is_told and len(set(of_last)) == len(of_last) and visible[: len(before)] == before


def plays(make: MakeDriver, seeds: range) -> Iterator[Play]:
    """All plays in which nothing expires, of which every one must be exact."""
    for seed in seeds:
        yield partial(drawn_and_finished, make, seed)
        yield partial(in_one_session, make, seed)
    for pieces in range(PIECES):
        yield partial(without_planner, make, pieces)
    for first, second in product(range(PIECES), repeat=2):
        yield partial(killed_twice, make, first, second)
        yield partial(met, make, first, second)
        yield partial(woken, make, first, second)


def is_exact(play: Play) -> bool:
    try:
        return play().is_exact_at_once
    except Exception:  # noqa: BLE001 - whatever keeps a query from its end
        return False
