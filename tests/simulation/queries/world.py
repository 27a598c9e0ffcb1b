"""The world that outlives drivers of a query: Spark's log, the decisions, the brokers; a session's Python workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from itertools import count, product
from typing import TypeVar

from tests.simulation.queries.brokers import Brokers, State
from twopc.errors import Unavailable
from twopc.spark.streaming.decision import FIRST_REVISION, Decision

PARTITIONS = 2
WORKERS = PARTITIONS + 1
"""Each has no task in some batch: what it did before is the last that its producer knows of."""

Asked = TypeVar("Asked")


class Silence(Enum):
    """The fate of a request."""

    NONE = "it is answered"
    LOST = "it is lost"
    ANSWER_LOST = "it is carried out, and its answer is lost"


@dataclass
class World:
    """`late` are tries of tasks that sleep; `wakes` draws when one of them goes on."""

    batches: int = 2
    brokers: Brokers = field(default_factory=Brokers)
    decisions: dict[tuple[int, int], Decision] = field(default_factory=dict)
    committed_batches: int = 0
    runs: Iterator[int] = field(default_factory=lambda: count(1))
    numbers: Iterator[int] = field(default_factory=lambda: count(1))
    silence: Callable[[], Silence] = lambda: Silence.NONE
    wakes: Callable[[], bool] = lambda: False
    late: list[Callable[[], object]] = field(default_factory=list)

    def ask(self, request: Callable[[], Asked]) -> Asked:
        """Carry out a request to a broker or to the store of decisions; raise Unavailable where no answer comes."""
        silence = self.silence()
        if silence is Silence.LOST:
            raise Unavailable("the request was lost")
        answer = request()
        if silence is Silence.ANSWER_LOST:
            raise Unavailable("the answer was lost")
        return answer

    def go_on(self) -> None:
        """Let who sleeps wake, where it is time."""
        while self.late and self.wakes():
            self.late.pop(0)()

    @property
    def everything(self) -> list[tuple[int, int]]:
        return list(product(range(self.batches), range(PARTITIONS)))

    @property
    def is_exact(self) -> bool:
        return self.brokers.visible() == self.everything

    @property
    def is_exact_at_once(self) -> bool:
        """Exact, and no batch was decided again because what its decision names was gone: so where nothing expires."""
        return self.is_exact and all(revision == FIRST_REVISION for _, revision in self.decisions)


@dataclass
class Worker:
    """A Python worker of Spark's, and its producer: it goes on as `twopc.kafka.transactions.batch_writer` says."""

    brokers: Brokers
    run: int = 0
    id: str = ""
    epoch: int = 0
    last: str = ""

    def write(self, run: int, number: int, batch: int, partition: int) -> str:
        """Write the rows of a task; return the transaction's name. `number` is nobody else's."""
        if not self.goes_on(run):
            self.run, self.id = run, self.new_id(run, number, partition)
            self.epoch = self.brokers.initialise(self.id)
        self.last = self.brokers.begin(self.id, batch, partition)
        return self.last

    def goes_on(self, run: int) -> bool:
        """Whether it keeps its producer: it does where that is of this run, and its last transaction was committed."""
        if run != self.run or self.brokers.is_fenced(self.id, self.epoch):
            return False
        return self.brokers.transactions[self.last].state in (State.COMMITTING, State.COMMITTED)

    def new_id(self, run: int, number: int, partition: int) -> str:
        return f"{run}-{number}"


class Session:
    """A Spark session: its workers, and the number of its run, where queries that are started again share one."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._workers = [Worker(world.brokers) for _ in range(WORKERS)]

    @cached_property
    def run(self) -> int:
        return next(self.world.runs)

    def write(self, run: int, batch: int, partition: int) -> str:
        worker = self._workers[(batch + partition) % WORKERS]
        return worker.write(run, next(self.world.numbers), batch, partition)

    def write_and_die(self, run: int, batch: int, partition: int) -> None:
        """A try of a task whose worker is killed behind its pre-commit, or is taken for dead: Spark makes another."""
        self.write(run, batch, partition)
        self._workers[(batch + partition) % WORKERS] = Worker(self.world.brokers)

    def sleep_and_write(self, run: int, batch: int, partition: int) -> None:
        """A try of a task that is taken for dead, and writes when it wakes."""
        number = next(self.world.numbers)
        zombie = Worker(self.world.brokers)
        self.world.late.append(lambda: zombie.write(run, number, batch, partition))
