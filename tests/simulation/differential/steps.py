"""The requests to both brokers, the simulated and the real one: random sequences, as data."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tests.simulation.broker_model import ABORTABLE_OFFSET_COMMIT, ABORTABLE_PRODUCE

NAMES = ("a", "b")
PARTITIONS = 2
LONG_MS = 60_000
STEPS_MOST = 12


@dataclass(frozen=True, slots=True)
class Who:
    """The producer that a request names: one that its transactional id was given, counted back from the newest.

    `other` takes it from the other id, `ahead` names a producer epoch that nobody was given yet.
    """

    back: int = 0
    other: bool = False
    ahead: bool = False


@dataclass(frozen=True, slots=True)
class Init:
    """InitProducerId; `expected` names a producer that wants to go on."""

    name: str
    timeout_ms: int = LONG_MS
    expected: Who | None = None
    version: int = 4


@dataclass(frozen=True, slots=True)
class AddPartition:
    name: str
    who: Who
    partition: int
    version: int = 3


@dataclass(frozen=True, slots=True)
class Produce:
    """One record. `shift` is added to the sequence number that is due."""

    name: str
    who: Who
    partition: int
    version: int = 11
    shift: int = 0


@dataclass(frozen=True, slots=True)
class AddOffsets:
    name: str
    who: Who
    version: int = 3


@dataclass(frozen=True, slots=True)
class CommitOffsets:
    """TxnOffsetCommit."""

    name: str
    who: Who
    offset: int
    version: int = 3


@dataclass(frozen=True, slots=True)
class FetchOffset:
    name: str
    stable: bool


@dataclass(frozen=True, slots=True)
class End:
    name: str
    who: Who
    commit: bool
    version: int


@dataclass(frozen=True, slots=True)
class Elapse:
    """Let so much time go by that the broker aborts what is open."""

    name: str


Step = Init | AddPartition | Produce | AddOffsets | CommitOffsets | FetchOffset | End | Elapse


def draw(seed: int, *, short_ms: int = 0) -> tuple[Step, ...]:
    """Return the sequence of a seed. With a short time-out every transaction has it, and it is waited for once."""
    rng = random.Random(f"steps-{seed}")
    # One of them begins most transactions as librdkafka does, the other as newer clients do.
    adding = rng.random() < 0.5
    steps: list[Step] = [Init(NAMES[0], short_ms or LONG_MS)]
    while len(steps) < rng.randint(8, STEPS_MOST):
        steps += _some(rng, rng.choice(NAMES) if rng.random() < 0.4 else NAMES[0], adding=adding, short_ms=short_ms)
    if short_ms:
        steps.insert(rng.randint(len(steps) // 2, len(steps)), Elapse(NAMES[0]))
        return tuple(map(_in_newer_words, steps))
    return tuple(steps)


def _in_newer_words(step: Step) -> Step:
    """A broker that verifies several sequences' partitions at once may answer an old request in a new one's words."""
    match step:
        case Produce(version=version):
            return replace(step, version=max(version, ABORTABLE_PRODUCE))
        case CommitOffsets(version=version):
            return replace(step, version=max(version, ABORTABLE_OFFSET_COMMIT))
        case _:
            return step


def _some(rng: random.Random, name: str, *, adding: bool, short_ms: int) -> list[Step]:
    who = _who(rng)
    partition = rng.randrange(PARTITIONS)
    version = 12 if adding == (rng.random() < 0.8) else rng.choice((9, 11, 11))
    match rng.choices(("init", "begin", "produce", "offsets", "fetch", "end"), (2, 2, 4, 2, 1, 6))[0]:
        case "init":
            expected = _who(rng) if rng.random() < 0.4 else None
            timeout_ms = short_ms or rng.choice((LONG_MS, LONG_MS, 2_147_483_647, 0))
            return [Init(name, timeout_ms, expected, rng.choice((3, 4, 5)))]
        case "begin":
            return [
                AddPartition(name, who, partition, rng.choice((0, 1, 2, 3))),
                Produce(name, who, partition, rng.choice((9, 11, 11))),
            ]
        case "produce":
            produced: list[Step] = [Produce(name, who, partition, version, rng.choice((0, 0, 0, 0, 0, 1, -1)))]
            return [*produced, _end(rng, name, Who(1))] if rng.random() < 0.15 else produced
        case "offsets":
            offsets: list[Step] = [CommitOffsets(name, who, rng.randrange(100), rng.choice((0, 3, 4, 5, 5)))]
            return [AddOffsets(name, who, rng.choice((0, 3))), *offsets] if rng.random() < 0.7 else offsets
        case "fetch":
            return [FetchOffset(name, rng.random() < 0.5)]
        case _:
            ends: list[Step] = [_end(rng, name, who)]
            return [*ends, _end(rng, name, rng.choice((Who(), Who(1))))] if rng.random() < 0.4 else ends


def _end(rng: random.Random, name: str, who: Who) -> End:
    return End(name, who, rng.random() < 0.6, rng.choice((1, 3, 4, 5, 5, 5)))


def _who(rng: random.Random) -> Who:
    if rng.random() < 0.65:
        return Who()
    return rng.choice((Who(1), Who(1), Who(2), Who(other=True), Who(ahead=True)))


def shrink(steps: Sequence[Step], fails: Callable[[Sequence[Step]], object]) -> tuple[Step, ...]:
    """Return a shorter sequence that still fails, and does so no longer without any one of its steps."""
    kept = list(steps)
    index = len(kept) - 1
    while index >= 0:
        shorter = kept[:index] + kept[index + 1 :]
        if fails(shorter):
            kept, index = shorter, len(shorter)
        index -= 1
    return tuple(kept)
