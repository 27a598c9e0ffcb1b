"""All sources of a job as one, and all its sinks, as the driver sees them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

import pytest

from twopc.config import RunSettings
from twopc.context import JobContext, SubtaskContext
from twopc.errors import ConfigurationError, GlobalCommitFailed, TransactionLost, Unavailable
from twopc.job_connectors import JobCommitter, JobPlanner, JobSink, JobSource
from twopc.protocol.attempts import GlobalCommit, Traces
from twopc.protocol.checkpoints import CheckpointKind
from twopc.protocol.facts import CheckpointMetadata, Committable, SplitPosition, StateHandle, SubtaskSnapshot
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex
from twopc.protocol.planned_starts import Witnessed
from twopc.sink import Committer, GlobalCommitter, Outcome, Settled, SharedTransaction, Sink, SinkWriter
from twopc.source import Follower, FollowerStanding, Source, SourcePlanner, SourceReader, Split

CONTEXT = JobContext("orders", AttemptId(2), 1, RunSettings())


@dataclass(frozen=True)
class Group(Follower):
    """A consumer group that has seen one checkpoint."""

    name: str
    kept_by: str
    checkpoint: int

    def cluster(self) -> str:
        return self.kept_by

    def standing(self) -> FollowerStanding:
        return FollowerStanding(Witnessed(self.checkpoint, 1), (SplitPosition(self.kept_by, 0, self.checkpoint),))


class Lines(Source, SourcePlanner):
    """One split for each name; a restored one goes on where it was. It is its own planner."""

    def __init__(self, *names: str, group: Group | None = None) -> None:
        self.names = names
        self.closed = False
        self._group = group

    def open_planner(self, context: JobContext) -> SourcePlanner:
        return self

    def open_reader(self, context: SubtaskContext, splits: Sequence[Split]) -> SourceReader:
        raise NotImplementedError

    def plan(self, restored: Mapping[str, SplitPosition], bounded: bool) -> list[Split]:
        return [Split(name, 0, restored[name].position if name in restored else 0, None) for name in self.names]

    def unreadable(self, positions: Iterable[SplitPosition]) -> dict[SplitPosition, str]:
        return {held: ", ".join(self.names) for held in positions}

    def follower(self) -> Follower | None:
        return self._group

    def close(self) -> None:
        self.closed = True


def planner(**sources: Source) -> JobPlanner:
    return JobSource(sources).open_planner(CONTEXT)


def test_every_split_names_its_source_and_goes_on_where_it_was_restored() -> None:
    splits = planner(web=Lines("a", "b"), app=Lines("c")).plan({"b": SplitPosition("b", 0, 7, "web")}, bounded=False)
    assert [(split.source, split.id, split.start) for split in splits] == [
        ("web", "a", 0),
        ("web", "b", 7),
        ("app", "c", 0),
    ]


def test_a_plan_bounds_the_first_stage_only_because_the_input_of_the_others_is_not_there_yet() -> None:
    class Bounded(Lines):
        def plan(self, restored: Mapping[str, SplitPosition], bounded: bool) -> list[Split]:
            return [replace(split, stop=9 if bounded else None) for split in super().plan(restored, bounded)]

    staged = JobSource({"web": Bounded("a"), "back": Bounded("b"), "again": Bounded("c")}, {"back": 1, "again": 2})
    splits = staged.open_planner(CONTEXT).plan({}, bounded=True)
    assert [(split.source, split.stop) for split in splits] == [("web", 9), ("back", None), ("again", None)]


def test_only_what_reads_back_what_the_job_writes_is_told_what_to_forget_and_only_its_own() -> None:
    told: dict[str, Sequence[SplitPosition]] = {}

    class Told(Lines):
        def forget(self, context: JobContext, kept: Sequence[SplitPosition]) -> None:
            told[self.names[0]] = kept

    staged = JobSource({"web": Told("a"), "back": Told("b")}, {"web": 0, "back": 1})
    web, back = SplitPosition("a", 0, 1, "web"), SplitPosition("b", 0, 2, "back")
    staged.forget(CONTEXT, [web, back])
    assert told == {"b": [back]}


def test_input_that_two_sources_read_is_refused_with_both_named() -> None:
    with pytest.raises(ConfigurationError, match="web, app read the same input, b: read it with one source"):
        planner(web=Lines("a", "b"), app=Lines("b")).plan({}, bounded=False)


def test_each_source_is_asked_about_its_own_positions_only() -> None:
    one, other = SplitPosition("a", 0, 1, "web"), SplitPosition("b", 0, 1, "app")
    assert planner(web=Lines("a"), app=Lines("b")).unreadable([one, other]) == {one: "a", other: "b"}


def test_positions_have_one_follower_only_where_every_source_has_it() -> None:
    group, other = Group("g", "here", 1), Group("other", "here", 1)
    shared = planner(web=Lines(group=group), app=Lines(group=group)).follower()
    assert shared is not None
    assert (shared.name, shared.cluster()) == ("g", "here")
    assert planner(web=Lines(group=group), app=Lines()).follower() is None
    assert planner(web=Lines(group=group), app=Lines(group=other)).follower() is None
    assert planner(web=Lines(group=group)).follower() is group


def test_a_follower_that_is_kept_in_two_places_is_in_neither() -> None:
    shared = planner(web=Lines(group=Group("g", "a", 1)), app=Lines(group=Group("g", "b", 1))).follower()
    assert shared is not None
    assert shared.cluster() == "a and b"


def test_the_standing_is_of_all_followers_although_they_are_not_one() -> None:
    name, standing = planner(web=Lines(group=Group("g", "a", 3)), app=Lines(group=Group("h", "b", 5))).standing()
    assert (name, standing.witnessed) == ("g, h", Witnessed(5, 1))
    assert [held.split for held in standing.ahead] == ["a", "b"]


def test_every_planner_is_closed_with_the_one_of_all() -> None:
    web, app = Lines(), Lines()
    with planner(web=web, app=app):
        before = [web.closed, app.closed]
    assert [*before, web.closed, app.closed] == [False, False, True, True]


class Settling(Committer):
    """Notes what it is asked about."""

    def __init__(self, traces: Traces) -> None:
        self.asked: list[str] = []
        self._traces = traces

    def traces(self) -> Traces:
        return self._traces

    def settle(self, committables: Sequence[Committable], confirmed: frozenset[str]) -> list[Settled]:
        self.asked += [item.name for item in committables]
        return [Settled(item, Outcome.COMMITTED, "") for item in committables]


def item(name: str, group: str, *, is_sole: bool = False) -> Committable:
    return Committable(name, CheckpointId(3), SubtaskIndex(0), {}, group, is_sole=is_sole)


ONE = Traces(AttemptId(1), AttemptId(5), AttemptId(0))
OTHER = Traces(AttemptId(4), AttemptId(2), AttemptId(3))


def test_each_transaction_group_settles_its_own_and_the_order_is_kept() -> None:
    files, kafka = Settling(ONE), Settling(OTHER)
    committer = JobCommitter("orders", {"files": files, "kafka": kafka}, ExitStack())
    due = [item("k1", "kafka"), item("f1", "files"), item("k2", "kafka")]
    assert [each.committable.name for each in committer.settle(due, frozenset())] == ["k1", "f1", "k2"]
    assert (files.asked, kafka.asked) == (["f1"], ["k1", "k2"])
    assert committer.traces() == Traces(AttemptId(4), AttemptId(5), AttemptId(3))


def test_output_of_a_sink_that_was_taken_out_is_settled_by_no_other() -> None:
    committer = JobCommitter("orders", {"a": Settling(ONE), "b": Settling(OTHER)}, ExitStack())
    with pytest.raises(ConfigurationError, match=r"output of 'gone', .*\(g1\), .* no such sink any more"):
        committer.settle([item("g1", "gone")], frozenset())
    [settled] = committer.settle([item("g1", "gone")], frozenset({"g1"}))
    assert settled.outcome is Outcome.ALREADY_COMMITTED


def test_the_only_sink_that_is_left_settles_nothing_of_one_that_was_taken_out() -> None:
    left = Settling(ONE)
    committer = JobCommitter("orders", {"kafka": left}, ExitStack())
    due = [item("k1", "kafka"), item("f1", "files")]
    with pytest.raises(ConfigurationError, match=r"output of 'files', .*\(f1\), .* no such sink any more"):
        committer.settle(due, frozenset())
    assert left.asked == []
    committer.settle(due, frozenset({"f1"}))
    assert left.asked == ["k1"]


def test_the_only_sink_that_is_left_does_not_take_output_of_another_for_its_own() -> None:
    left = Settling(ONE)
    committer = JobCommitter("orders", {"kafka": left}, ExitStack())
    with pytest.raises(ConfigurationError, match=r"output of 'files', .*\(f1\), .* no such sink any more"):
        committer.settle([item("f1", "files")], frozenset())
    assert left.asked == []


def test_the_only_transaction_group_settles_what_the_only_one_before_it_wrote() -> None:
    only = Settling(ONE)
    due = [item("t1", "before", is_sole=True), item("t2", "before", is_sole=True)]
    JobCommitter("orders", {"renamed": only}, ExitStack()).settle(due, frozenset())
    assert only.asked == ["t1", "t2"]


def test_what_the_only_one_wrote_is_settled_by_none_of_several() -> None:
    committer = JobCommitter("orders", {"a": Settling(ONE), "b": Settling(OTHER)}, ExitStack())
    with pytest.raises(ConfigurationError, match="output of 'before'"):
        committer.settle([item("t1", "before", is_sole=True)], frozenset())


class Global(Sink, GlobalCommitter):
    """Has a global committer, which is itself; `error` keeps it from committing."""

    def __init__(self, error: Exception | None = None) -> None:
        self.committed: list[tuple[int, list[str]]] = []
        self.closed = 0
        self._error = error

    def open_writer(self, context: SubtaskContext) -> SinkWriter:
        raise NotImplementedError

    def open_committer(self, context: JobContext) -> Committer:
        return Settling(ONE)

    def open_global_committer(self, context: JobContext) -> GlobalCommitter:
        return self

    def commit(self, checkpoint_id: CheckpointId, committables: Sequence[Committable]) -> None:
        if self._error is not None:
            raise self._error
        self.committed.append((checkpoint_id, [item.name for item in committables]))

    def close(self) -> None:
        self.closed += 1


class Plain(Global):
    def open_global_committer(self, context: JobContext) -> None:  # type: ignore[override]
        return None


def outstanding(*items: Committable) -> GlobalCommit:
    return GlobalCommit.of(CheckpointId(3), items)


def test_each_global_committer_commits_what_is_its_own_and_is_closed() -> None:
    table, other = Global(), Global()
    sink = JobSink({"table": table, "other": other, "kafka": Plain()})
    sink.commit_globally(CONTEXT, outstanding(item("t1", "table"), item("o1", "other"), item("t2", "table")))
    assert (table.committed, other.committed) == ([(3, ["t1", "t2"])], [(3, ["o1"])])
    assert (table.closed, other.closed) == (1, 1)


def test_a_group_says_whether_it_has_a_global_committer() -> None:
    groups = JobSink({"table": Global(), "kafka": Plain()}).groups_of_run(CONTEXT)
    assert {group.id: group.is_global for group in groups} == {"table": True, "kafka": False}


def test_a_global_committer_that_would_never_be_asked_is_refused_by_the_name_of_its_sink() -> None:
    def together(sink: Global) -> Global:
        shared = SharedTransaction("one", None)
        sink.shared_transaction = lambda context: shared  # type: ignore[method-assign]
        return sink

    leads = JobSink({"table": together(Global()), "kafka": together(Plain())})
    assert [group.is_global for group in leads.groups_of_run(CONTEXT)] == [True]
    follows = JobSink({"kafka": together(Plain()), "table": together(Global())})
    with pytest.raises(ConfigurationError, match=r"sink 'table' has a global committer.* sink 'kafka'"):
        follows.groups_of_run(CONTEXT)


@pytest.mark.parametrize("sinks", [{"a": Global(), "b": Plain()}, {"left": Global()}, {"gone": Plain()}])
def test_output_that_nobody_can_commit_globally_any_more_is_refused_by_name(sinks: dict[str, Sink]) -> None:
    with pytest.raises(GlobalCommitFailed, match=r"checkpoint 3 by sink 'gone' failed.* no such sink") as raised:
        JobSink(sinks).commit_globally(CONTEXT, outstanding(item("g1", "gone")))
    assert not raised.value.restartable


@pytest.mark.parametrize(
    ("error", "restartable"), [(OSError("disk full"), True), (Unavailable("away"), True), (TransactionLost("x"), False)]
)
def test_a_global_commit_that_fails_names_job_checkpoint_and_sink(error: Exception, restartable: bool) -> None:
    sink = Global(error)
    with pytest.raises(GlobalCommitFailed, match=f"job 'orders'.* checkpoint 3 by sink 'table'.*{error}") as raised:
        JobSink({"table": sink}).commit_globally(CONTEXT, outstanding(item("t1", "table")))
    assert (raised.value.restartable, sink.closed) == (restartable, 1)


def test_only_what_reads_back_what_the_job_writes_is_asked_what_came_after_a_checkpoint() -> None:
    class Own(Lines):
        def on_course(self, restored: CheckpointMetadata) -> list[SplitPosition]:
            return [replace(held, position=9) for held in restored.positions if held.source == "back"]

    staged = JobSource({"web": Lines("a"), "back": Own("b")}, {"web": 0, "back": 1})
    held = SplitPosition("b", 0, 2, "back")
    every = SubtaskSnapshot.of(SubtaskIndex(0), [SplitPosition("a", 0, 5, "web"), held], StateHandle("p", "", 0, 0), ())
    restored = CheckpointMetadata("j", CheckpointId(3), AttemptId(1), 1, CheckpointKind.PERIODIC, 0, 0, (every,))
    assert staged.open_planner(CONTEXT).on_course(restored) == [replace(held, position=9)]
