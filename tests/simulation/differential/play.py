"""Plays one sequence on a broker, simulated or real, and notes what can be seen.

Producer ids differ from broker to broker: in the notes each is the number of its first appearance. A request that finds
the broker busy is repeated, on both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from tests.simulation.differential.observed import BUSY, Answer, Description, VisiblePartition
from tests.simulation.differential.steps import (
    NAMES,
    PARTITIONS,
    AddOffsets,
    AddPartition,
    CommitOffsets,
    Elapse,
    End,
    FetchOffset,
    Init,
    Produce,
    Step,
    Who,
)
from tests.simulation.transaction_coordinator import NOBODY, Producer
from tests.simulation.transaction_tables import MOST_PRODUCER_EPOCH, Code

MOST_TRIES = 500
NEVER_GIVEN = (987_654_321, 0)


class Side(Protocol):
    """A broker that can be asked. `settle` returns when nothing is prepared any more, `lapse` after a time-out."""

    def init(self, step: Init, expected: Producer | None) -> Answer: ...
    def add_partition(self, step: AddPartition, producer: Producer) -> Answer: ...
    def produce(self, step: Produce, producer: Producer, sequence: int, value: str) -> Answer: ...
    def add_offsets(self, step: AddOffsets, producer: Producer) -> Answer: ...
    def commit_offsets(self, step: CommitOffsets, producer: Producer) -> Answer: ...
    def fetch_offset(self, step: FetchOffset) -> Answer: ...
    def end(self, step: End, producer: Producer) -> Answer: ...
    def settle(self, name: str) -> Description | None: ...
    def lapse(self) -> None: ...
    def seen(self, partition: int) -> VisiblePartition: ...


@dataclass(frozen=True, slots=True)
class Note:
    """One step, in whose name, what it was answered, and how its transactional id stands afterwards."""

    step: Step | str
    asker: Producer | None = None
    answer: Answer | None = None
    description: Description | None = None
    seen: tuple[VisiblePartition, ...] = ()


class Play:
    """One sequence on one side."""

    def __init__(self, side: Side, given: Mapping[str, Producer] | None = None) -> None:
        self._side = side
        self._given = {name: [given[name]] if given and name in given else [] for name in NAMES}
        self._numbers: dict[int, int] = {-1: -1}
        self._sequences: dict[tuple[Producer, int], int] = {}
        self._asker: Producer | None = None

    def run(self, steps: Sequence[Step]) -> list[Note]:
        notes = [self._note(step, str(index)) for index, step in enumerate(steps)]
        notes.append(self._look("at the end"))
        for name in NAMES:
            if self._side.settle(name) is not None:
                notes.append(self._note(Init(name), ""))
        notes.append(self._look("when all is ended"))
        return notes

    def _note(self, step: Step, value: str) -> Note:
        self._asker = None
        answer = self._ask(step, value)
        for _ in range(MOST_TRIES):
            description = self._side.settle(step.name)
            if answer.code not in BUSY:
                break
            answer = self._ask(step, value)
        asker = None if self._asker is None else self._number(self._asker)
        return Note(step, asker, self._renamed(answer), self._described(description))

    def _look(self, when: str) -> Note:
        return Note(when, seen=tuple(self._side.seen(partition) for partition in range(PARTITIONS)))

    def _ask(self, step: Step, value: str) -> Answer:
        match step:
            case Init(name=name, expected=expected):
                answer = self._side.init(step, None if expected is None else self._who(name, expected))
            case Produce(name=name, who=who):
                return self._produce(step, self._who(name, who), value)
            case AddPartition(name=name, who=who):
                return self._side.add_partition(step, self._who(name, who))
            case AddOffsets(name=name, who=who):
                return self._side.add_offsets(step, self._who(name, who))
            case CommitOffsets(name=name, who=who):
                return self._side.commit_offsets(step, self._who(name, who))
            case FetchOffset():
                return self._side.fetch_offset(step)
            case End(name=name, who=who):
                answer = self._side.end(step, self._who(name, who))
            case Elapse():
                self._side.lapse()
                return Answer(Code.NONE)
        if answer.code is Code.NONE and answer.producer not in (None, NOBODY):
            assert answer.producer is not None
            self._given[step.name].append(answer.producer)
        return answer

    def _produce(self, step: Produce, producer: Producer, value: str) -> Answer:
        due = self._sequences.get((producer, step.partition), 0)
        sequence = max(0, due + step.shift)
        answer = self._side.produce(step, producer, sequence, value)
        if answer.code is Code.NONE:
            self._sequences[producer, step.partition] = max(due, sequence + 1)
        return answer

    def _who(self, name: str, who: Who) -> Producer:
        given = self._given[next(other for other in NAMES if other != name) if who.other else name]
        producer_id, producer_epoch = given[-1 - who.back] if who.back < len(given) else NEVER_GIVEN
        self._asker = producer_id, min(producer_epoch + who.ahead, MOST_PRODUCER_EPOCH)
        return self._asker

    def _renamed(self, answer: Answer) -> Answer:
        return answer if answer.producer is None else replace(answer, producer=self._number(answer.producer))

    def _described(self, description: Description | None) -> Description | None:
        return None if description is None else replace(description, producer=self._number(description.producer))

    def _number(self, producer: Producer) -> Producer:
        return self._numbers.setdefault(producer[0], len(self._numbers)), producer[1]


def difference(simulated: Sequence[Note], real: Sequence[Note]) -> str:
    """Return the first note in which the two differ; nothing where they agree."""
    started: dict[str, tuple[int, int]] = {}
    for ours, theirs in zip(simulated, real, strict=True):
        same_start = _same_start(ours, theirs, started)
        if not same_start or _without_start(ours) != _without_start(theirs):
            return f"{ours.step} of {ours.asker}\n  simulated: {_told(ours)}\n  real:      {_told(theirs)}"
    return ""


def _same_start(ours: Note, theirs: Note, started: dict[str, tuple[int, int]]) -> bool:
    """Compare start times: none with none, and where the simulated one stays what it was, so must the real one."""
    if ours.description is None or theirs.description is None or isinstance(ours.step, str):
        return True
    starts = ours.description.start_ms, theirs.description.start_ms
    before = started.get(ours.step.name, starts)
    started[ours.step.name] = starts
    return (starts[0] < 0) == (starts[1] < 0) and (before[0] != starts[0] or before[1] == starts[1])


def _without_start(note: Note) -> Note:
    description = note.description
    return note if description is None else replace(note, description=replace(description, start_ms=0))


def _told(note: Note) -> str:
    return f"{note.answer or ''} {note.description or ''} {note.seen or ''}"
