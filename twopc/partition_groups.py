"""Partition groups: which subtask reads which split, and owns which keyed state. Pure.

The splits of one partition number, of all sources whose records come to an operator with state by key, are one group.
One subtask reads them, and owns the keyed state of that number, of all operators.

Invariants:

- A number's owner follows from the number and the parallelism alone, so where its state stands in a checkpoint is known
  without a look into the snapshots.
- Splits of sources from which no record comes to a keyed operator go where there is least to read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from twopc.errors import ConfigurationError
from twopc.listing import listed
from twopc.protocol.facts import SubtaskSnapshot
from twopc.protocol.ids import SubtaskIndex
from twopc.source import Split


def owner(partition: int, parallelism: int) -> SubtaskIndex:
    """Return which subtask owns a partition number."""
    return SubtaskIndex(partition % parallelism)


def assign(splits: Sequence[Split], parallelism: int, keyed: Collection[str]) -> list[tuple[Split, ...]]:
    """Deal the splits out to the subtasks; `keyed` are the sources whose records come to a keyed operator."""
    shares: list[list[Split]] = [[] for _ in range(parallelism)]
    for split in splits:
        if split.source in keyed:
            shares[owner(split.partition, parallelism)].append(split)
    for split in splits:
        if split.source not in keyed:
            min(shares, key=len).append(split)
    return [tuple(share) for share in shares]


def owned(splits: Iterable[Split], keyed: Collection[str]) -> frozenset[int]:
    """Return the partition numbers that a subtask owns which reads these splits."""
    return frozenset(split.partition for split in splits if split.source in keyed)


def concerning(
    subtask: SubtaskIndex, numbers: Iterable[int], snapshots: Sequence[SubtaskSnapshot]
) -> tuple[SubtaskSnapshot, ...]:
    """Return those of a checkpoint's snapshots from which a subtask is restored that owns these numbers."""
    owners = {subtask, *(owner(number, len(snapshots)) for number in numbers if snapshots)}
    return tuple(snapshot for snapshot in snapshots if snapshot.subtask in owners)


def refuse_uneven(
    job: str, splits: Iterable[Split], keyed: Mapping[str, Collection[str]], input_of: Callable[[Split], str]
) -> None:
    """Raise ConfigurationError where inputs that meet at a keyed operator have different numbers of partitions.

    The records of one key would be under different numbers. `keyed` has the sources of each such operator; `input_of`
    names the input of a split.
    """
    every = list(splits)
    for operator, sources in keyed.items():
        numbers: dict[str, set[int]] = {}
        for split in every:
            if split.source in sources:
                numbers.setdefault(input_of(split), set()).add(split.partition)
        counts = {name: len(each) for name, each in sorted(numbers.items())}
        most = max(counts.values(), default=0)
        if fewer := [name for name, count in counts.items() if count < most]:
            found = ", ".join(f"{name}: {count}" for name, count in counts.items())
            raise ConfigurationError(
                f"job {job!r}: {operator!r} keeps a state for each key, and the inputs that meet there have different "
                f"numbers of partitions ({found}), so one key would have several states: put key_by(..., "
                f"partitions={most}) between {listed(fewer)} and {operator!r}, or give all of them the same number, "
                "and write each keyed by the same key"
            )


def moved_keys(
    before: Collection[str],
    splits: Iterable[Split],
    keyed: Mapping[str, Collection[str]],
    input_of: Callable[[str], str],
) -> dict[str, str]:
    """Name each keyed operator of whose inputs one has more partitions than when it was read `before`, and say so.

    Whoever writes chooses a key's partition by their number: the state of many a key would be under another one.
    `before` has the ids of the splits that were read; `input_of` names the input of a split.
    """
    moved: dict[str, str] = {}
    every = list(splits)
    for operator, sources in keyed.items():
        own = [split.id for split in every if split.source in sources]
        read = Counter(input_of(split) for split in own if split in before)
        grown = Counter(input_of(split) for split in own if split not in before and read[input_of(split)])
        for name, more in grown.items():
            moved[operator] = (
                f"{operator!r} keeps a state for each key, and {name} had {read[name]} partitions when it was begun "
                f"and has {read[name] + more} now: keys are in other partitions since, where they have no state. Copy "
                f"{name} to an input of {read[name]} partitions and read that; or begin that state anew: give the "
                f"operator another name, and start once with --drop-states {operator}"
            )
    return moved
