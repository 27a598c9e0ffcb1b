"""What the driver does before the first record, and in which order."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from tests.driver.scripts import carried_out, edge_of
from tests.plain_jobs import in_a_row
from twopc.config import RunSettings
from twopc.context import JobContext, SubtaskContext
from twopc.driver.recovery import Planner, RecoveryResult, recovery
from twopc.errors import ConfigurationError, TransactionLost, Unavailable
from twopc.job import Job
from twopc.kafka.positions.partition_position import PartitionPosition, PartitionSplit
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.protocol.attempts import GlobalCommit, StartedAttempt
from twopc.protocol.checkpoints import CheckpointKind
from twopc.protocol.facts import (
    CheckpointMetadata,
    Committable,
    KnownOutput,
    SplitPosition,
    StateHandle,
    SubtaskSnapshot,
)
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex
from twopc.protocol.planned_starts import StartsPlanned
from twopc.protocol.requests import ConfirmCommittables, NextGlobalCommit, PlanStarts, Request
from twopc.sink import Committer, Outcome, Settled, Sink, SinkWriter
from twopc.source import Source, SourcePlanner, SourceReader, Split

CONTEXT = JobContext("job", AttemptId(2), 1, RunSettings())
PARTITION = TopicPartition("in", 0)


def committable(number: int) -> Committable:
    return Committable(f"t@{number}", CheckpointId(number), SubtaskIndex(0), {})


def metadata(*numbers: int) -> CheckpointMetadata:
    """Checkpoint 7, with these transactions pre-committed, at position 70 of in[0]."""
    snapshot = SubtaskSnapshot.of(
        SubtaskIndex(0),
        (PartitionPosition(PARTITION, "id", Position(70)).to_split_position(),),
        StateHandle("chk-7/subtask-0", "digest", 0, 0),
        tuple(committable(number) for number in numbers),
    )
    return CheckpointMetadata("job", CheckpointId(7), AttemptId(1), 1, CheckpointKind.PERIODIC, 0, 0, (snapshot,))


@dataclass
class FakeSink(Sink, Committer):
    """Writes down what is asked of it, in order, in a log that it shares with the client."""

    log: list[str]
    lost: frozenset[str] = frozenset()

    def open_writer(self, context: SubtaskContext) -> SinkWriter:
        raise NotImplementedError

    def open_committer(self, context: JobContext) -> Committer:
        return self

    def settle(self, committables: Sequence[Committable], confirmed: frozenset[str]) -> list[Settled]:
        self.log.append(f"settle {','.join(item.name for item in committables)}")
        return [
            Settled(item, Outcome.LOST if item.name in self.lost else Outcome.COMMITTED, "said the broker")
            for item in committables
        ]

    def commit_globally(self, context: JobContext, due: GlobalCommit) -> None:
        names = ",".join(item.name for item in due.committables)
        self.log.append(f"commit globally {due.checkpoint_id}: {names}")

    def abort_lingering(self) -> list[str]:
        self.log.append("abort lingering")
        return ["old"]

    def compare(self, known: Sequence[KnownOutput]) -> None:
        self.log.append(f"compare {','.join(each.name for each in known)}")


@dataclass
class FakeClient:
    """`outstanding` is what is to be committed globally, until it is confirmed."""

    log: list[str]
    outstanding: list[GlobalCommit] = field(default_factory=list)

    def ask(self, job: str, request: Request[Any]) -> GlobalCommit | None:
        match request:
            case ConfirmCommittables():
                if request.names:
                    self.log.append(f"confirm {','.join(request.names)}")
                self.outstanding = [each for each in self.outstanding if each.checkpoint_id != request.checkpoint_id]
            case NextGlobalCommit():
                return next(iter(self.outstanding), None)
            case PlanStarts():
                self.plan_starts(request.planned)
        return None

    def plan_starts(self, planned: StartsPlanned) -> None:
        """Nobody asks."""


def started(latest: CheckpointMetadata | None, confirmed: Sequence[str] = ()) -> StartedAttempt:
    return StartedAttempt(
        attempt=AttemptId(2), latest=latest, restored=latest, confirmed=frozenset(confirmed), earlier_attempts=True
    )


def recover(client: object, source: Source, sink: Sink, started: StartedAttempt) -> RecoveryResult:
    return carried_out(recovery(CONTEXT, started), edge_of(client, source, sink))


def run_recovery(
    latest: CheckpointMetadata | None, *, lost: Sequence[str] = (), confirmed: Sequence[str] = ()
) -> list[str]:
    log: list[str] = []
    recover(FakeClient(log), FakeSource(), FakeSink(log, frozenset(lost)), started(latest, confirmed))
    return log


def test_it_settles_then_confirms_then_aborts_what_lingers() -> None:
    assert run_recovery(metadata(6, 7)) == ["settle t@6,t@7", "confirm t@6,t@7", "abort lingering"]


def test_what_was_confirmed_before_the_crash_is_not_confirmed_again() -> None:
    assert run_recovery(metadata(7), confirmed=["t@7"]) == ["settle t@7", "abort lingering"]


def test_what_is_outstanding_is_committed_globally_before_anything_is_swept_and_confirmed_only_then() -> None:
    log: list[str] = []
    client = FakeClient(log, [GlobalCommit.of(CheckpointId(each), (committable(each),)) for each in (6, 7)])
    sink = FakeSink(log)
    latest = metadata(6, 7)
    of_all = [replace(item, is_global=True) for item in latest.committables]
    snapshot = SubtaskSnapshot.of(SubtaskIndex(0), (), latest.snapshots[0].state, of_all)
    recover(client, FakeSource(), sink, started(replace(latest, snapshots=(snapshot,))))
    assert log == [
        "settle t@6,t@7",
        "commit globally 6: t@6",
        "confirm t@6",
        "commit globally 7: t@7",
        "confirm t@7",
        "abort lingering",
    ]


def test_outputs_are_compared_as_every_subtask_knew_them_once_what_lingers_is_aborted() -> None:
    latest = metadata()
    known = [KnownOutput("out", 1, "sink"), KnownOutput("chosen", 1, "sink")]
    snapshots = tuple(
        SubtaskSnapshot.of(SubtaskIndex(index), (), latest.snapshots[0].state, (), outputs=known[: index + 1])
        for index in (0, 1)
    )
    assert run_recovery(replace(latest, snapshots=snapshots))[-2:] == ["abort lingering", "compare out,chosen"]


def test_without_a_checkpoint_only_what_lingers_is_aborted() -> None:
    assert run_recovery(None) == ["abort lingering"]


def test_a_lost_transaction_stops_the_job_before_any_id_is_initialised_and_names_the_input() -> None:
    log: list[str] = []
    with pytest.raises(TransactionLost, match=r"t@7: said the broker.*up to in\[0\]@70"):
        recover(
            FakeClient(log),
            FakeSource(),
            FakeSink(log, frozenset({"t@7"})),
            started(metadata(6, 7)),
        )
    assert log == ["settle t@6,t@7", "confirm t@6"]


@dataclass
class FakeSource(Source, SourcePlanner):
    """One partition that grows by ten between two plans."""

    end: int = 100
    gone: Mapping[SplitPosition, str] = field(default_factory=dict)
    asked: list[Mapping[str, SplitPosition]] = field(default_factory=list)

    def open_planner(self, context: JobContext) -> SourcePlanner:
        return self

    def plan(self, restored: Mapping[str, SplitPosition], bounded: bool) -> list[Split]:
        self.asked.append(dict(restored))
        known = restored.get(str(PARTITION))
        start = Position(self.end if known is None else known.position[0])
        stop = Position(self.end) if bounded else None
        self.end += 10
        return [PartitionSplit(PARTITION, "id", start, stop).to_split()]

    def unreadable(self, positions: Iterable[SplitPosition]) -> dict[SplitPosition, str]:
        return {held: self.gone[held] for held in positions if held in self.gone}

    def open_reader(self, context: SubtaskContext, splits: Sequence[Split]) -> SourceReader:
        raise NotImplementedError


@dataclass
class Starting(FakeClient):
    """One that is told where reading begins."""

    planned: list[StartsPlanned] = field(default_factory=list)

    def plan_starts(self, planned: StartsPlanned) -> None:
        self.planned.append(planned)

    @property
    def newest(self) -> StartsPlanned | None:
        return self.planned[-1] if self.planned else None


@dataclass
class Planning:
    """A driver's planner and its source."""

    source: FakeSource
    bounded: bool

    def __post_init__(self) -> None:
        self.planner = Planner(in_a_row("job", self.source, (), FakeSink([])), bounded=self.bounded)


def plan(
    planning: Planning,
    restored: CheckpointMetadata | None = None,
    client: Starting | None = None,
    planned: StartsPlanned | None = None,
) -> Split:
    known = replace(started(restored), planned=planned)
    edge = edge_of(client or Starting([]), planning.source, FakeSink([]))
    [only] = carried_out(planning.planner.plan(CONTEXT, known, restored), edge)
    return only


def test_an_attempt_after_a_failure_starts_where_the_first_one_did_if_nothing_completed() -> None:
    planner = Planning(FakeSource(), bounded=False)
    first = plan(planner)
    assert plan(planner) == first


def test_another_driver_starts_where_the_first_one_did_if_nothing_completed() -> None:
    client, source = Starting([]), FakeSource()
    first = plan(Planning(source, bounded=False), None, client)
    assert plan(Planning(source, bounded=False), None, client, client.newest) == first
    assert len(client.planned) == 1


def test_another_driver_that_is_told_to_start_elsewhere_does() -> None:
    client, source = Starting([]), FakeSource()
    first = plan(Planning(source, bounded=False), None, client)
    elsewhere = replace(client.planned[0], mode="Earliest()")
    assert plan(Planning(source, bounded=False), None, client, elsewhere).start > first.start
    assert len(client.planned) == 2


def test_starts_are_not_stored_where_a_checkpoint_is_restored() -> None:
    client = Starting([])
    plan(Planning(FakeSource(), bounded=False), metadata(), client)
    assert client.planned == []


def test_nothing_is_read_where_the_starts_could_not_be_stored() -> None:
    class Unreachable(Starting):
        def plan_starts(self, planned: StartsPlanned) -> None:
            raise Unavailable("no coordinator listens")

    with pytest.raises(Unavailable):
        plan(Planning(FakeSource(), bounded=False), None, Unreachable([]))


def test_a_restored_checkpoint_wins_over_the_first_start() -> None:
    planner = Planning(FakeSource(), bounded=False)
    plan(planner)
    assert plan(planner, metadata()).start == [70, "id"]


@pytest.mark.parametrize(("goes_back", "start"), [(True, [71, "id"]), (False, [70, "id"])])
def test_a_job_that_goes_back_passes_over_what_it_has_written_for_itself_since(goes_back: bool, start: object) -> None:
    class Own(FakeSource):
        def on_course(self, restored: CheckpointMetadata) -> list[SplitPosition]:
            return [replace(held, position=[71, "id"]) for held in restored.positions]

    source, restored = Own(), metadata()
    planner = Planner(in_a_row("own", source, (), FakeSink([])), bounded=False)
    edge = edge_of(Starting([]), source, FakeSink([]))
    [split] = carried_out(planner.plan(CONTEXT, started(restored), restored, goes_back=goes_back), edge)
    assert split.start == start


def test_a_bounded_run_keeps_the_ends_that_it_found_at_its_start() -> None:
    planner = Planning(FakeSource(), bounded=True)
    plan(planner)
    assert plan(planner, metadata()).stop == [100, "id"]


@dataclass
class Numbered(FakeSource):
    """A source of one input of this name, with so many partitions."""

    name: str = "in"
    partitions: int = 2

    def __post_init__(self) -> None:
        self.inputs = (self.name,)

    def plan(self, restored: Mapping[str, SplitPosition], bounded: bool) -> list[Split]:
        return [Split(f"{self.name}[{number}]", number, 0, None) for number in range(self.partitions)]

    def input_of(self, split: str) -> str:
        return split.partition("[")[0]


def test_inputs_that_do_not_fit_together_are_refused_before_a_start_is_stored() -> None:
    job = Job("job")
    web = job.source(Numbered(name="web"), name="clicks")
    both = web.merge(job.source(Numbered(name="shop", partitions=3), name="orders"))
    counted = both.stateful_map(lambda count, value: (count, value), name="count")
    definition = counted.sink(FakeSink([])).definition()
    client = Starting([])
    edge = edge_of(client, definition.source, FakeSink([]))
    with pytest.raises(ConfigurationError, match=r"'count' keeps a state .* \(shop: 3, web: 2\)"):
        carried_out(Planner(definition, bounded=False).plan(CONTEXT, started(None), None), edge)
    assert client.planned == []
