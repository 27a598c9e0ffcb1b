"""What the driver does about lost output, in which order, and what it says."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from tests.driver.scripts import carried_out, edge_of
from tests.driver.test_recovery import FakeSink, FakeSource, committable
from twopc.config import RunSettings
from twopc.context import JobContext
from twopc.driver.recovery import RecoveryResult, recovery
from twopc.errors import Fenced, TransactionLost
from twopc.protocol.attempts import StartedAttempt
from twopc.protocol.checkpoints import CheckpointKind
from twopc.protocol.facts import CheckpointMetadata, Committable, SplitPosition, StateHandle, SubtaskSnapshot
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex
from twopc.protocol.requests import ConfirmCommittables, Request, SettleLoss
from twopc.sink import Outcome, Settled

CONTEXT = JobContext("job", AttemptId(2), 1, RunSettings())


def metadata(number: int, *names: int, base: int = 0) -> CheckpointMetadata:
    snapshot = SubtaskSnapshot.of(
        SubtaskIndex(0),
        (SplitPosition("in[0]", 0, [10 * number, "id"]),),
        StateHandle(f"chk-{number}/subtask-0", "digest", 0, 0),
        tuple(committable(each) for each in names),
        base=CheckpointId(base),
    )
    return CheckpointMetadata("job", CheckpointId(number), AttemptId(1), 1, CheckpointKind.PERIODIC, 0, 0, (snapshot,))


@dataclass
class LosingSink(FakeSink):
    """Loses some, holds back some; `zombie` commits what is held back before it can be aborted."""

    held: frozenset[str] = frozenset()
    certain: bool = True
    zombie: bool = False
    empty: frozenset[str] = frozenset()

    def settle(self, committables: Sequence[Committable], confirmed: frozenset[str]) -> list[Settled]:
        self.log.append(f"settle {','.join(item.name for item in committables)}")
        return [self._settled(item) for item in committables]

    def _settled(self, item: Committable) -> Settled:
        if item.name in self.lost:
            return Settled(item, Outcome.LOST, "said the broker", self.certain)
        outcome = Outcome.HELD if item.name in self.held else Outcome.COMMITTED
        return Settled(item, outcome, "said the broker", holds_output=item.name not in self.empty)

    def give_up(self, committables: Sequence[Committable]) -> list[Settled]:
        self.log.append(f"give up {','.join(item.name for item in committables)}")
        outcome = Outcome.ALREADY_COMMITTED if self.zombie else Outcome.LOST
        return [Settled(item, outcome, "aborted", not self.zombie) for item in committables]

    def commit_held(self, committables: Sequence[Committable]) -> list[Settled]:
        self.log.append(f"commit {','.join(item.name for item in committables)}")
        return [Settled(item, Outcome.COMMITTED, "committed") for item in committables]


@dataclass
class Client:
    log: list[str]
    messages: list[str] = field(default_factory=list)
    newer_attempt: bool = False

    def ask(self, job: str, request: Request[Any]) -> None:
        """The sink commits nothing globally."""
        match request:
            case ConfirmCommittables() if self.newer_attempt:
                raise Fenced(f"attempt {request.attempt} does not own the job")
            case ConfirmCommittables() if request.names:
                self.log.append(f"confirm {','.join(request.names)}")
            case SettleLoss():
                self.log.append(f"store {','.join(request.names)} from {dict(request.bases)}")
                self.messages.append(request.message)


def run(
    sink: LosingSink, started: StartedAttempt, context: JobContext = CONTEXT, *, gone: Sequence[int] = ()
) -> tuple[RecoveryResult, Client]:
    """Recover, while the input of these checkpoints is gone."""
    client, source = Client(sink.log), FakeSource()
    positions = [position for number in gone for position in metadata(number).positions]
    source.gone = {each: f"from {each} on" for each in positions}
    return carried_out(recovery(context, started), edge_of(client, source, sink)), client


def started(latest: CheckpointMetadata, *earlier: CheckpointMetadata, lost: Sequence[str] = ()) -> StartedAttempt:
    return StartedAttempt(
        attempt=AttemptId(2),
        latest=latest,
        restored=latest,
        confirmed=frozenset(),
        earlier_attempts=True,
        lost=frozenset(lost),
        earlier=earlier,
    )


def test_it_stores_from_where_it_heals_before_any_id_is_initialised() -> None:
    log: list[str] = []
    sink = LosingSink(log, frozenset({"t@7"}))
    found, client = run(sink, started(metadata(7, 7, base=6), metadata(6)))
    assert log == ["settle t@7", "store t@7 from {0: 6}", "abort lingering"]
    assert found.restored is not None
    assert [str(item) for item in found.restored.positions] == ["in[0]@60"]
    assert "up to in[0]@70" in client.messages[0]


def test_a_driver_whose_job_another_has_taken_over_says_nothing_of_a_loss() -> None:
    log: list[str] = []
    sink, client = LosingSink(log, frozenset({"t@7"}), certain=False), Client(log, newer_attempt=True)
    known = started(metadata(7, 7, base=6), metadata(6))
    with pytest.raises(Fenced, match="does not own the job"):
        carried_out(recovery(CONTEXT, known), edge_of(client, FakeSource(), sink))


def test_what_is_open_behind_a_lost_one_is_aborted_before_that_is_stored() -> None:
    log: list[str] = []
    run(LosingSink(log, frozenset({"t@6"}), held=frozenset({"t@7"})), started(metadata(7, 6, 7, base=5), metadata(5)))
    assert log == ["settle t@6,t@7", "give up t@7", "store t@6,t@7 from {0: 5}", "abort lingering"]


def test_a_zombie_that_committed_what_was_held_back_makes_it_refuse() -> None:
    log: list[str] = []
    sink = LosingSink(log, frozenset({"t@6"}), held=frozenset({"t@7"}), zombie=True)
    with pytest.raises(TransactionLost, match="what subtask 0 wrote for checkpoint 7 is committed, though t@6"):
        run(sink, started(metadata(7, 6, 7, base=5), metadata(5)))
    assert log == ["settle t@6,t@7", "give up t@7"]


def test_a_commit_without_output_behind_a_loss_does_not_keep_it_from_being_healed() -> None:
    log: list[str] = []
    sink = LosingSink(log, frozenset({"t@6"}), empty=frozenset({"t@7"}))
    run(sink, started(metadata(7, 6, 7, base=5), metadata(5)))
    assert log == ["settle t@6,t@7", "confirm t@7", "store t@6 from {0: 5}", "abort lingering"]


def test_nothing_is_aborted_where_healing_is_impossible_anyway() -> None:
    log: list[str] = []
    sink = LosingSink(log, frozenset({"t@6"}), held=frozenset({"t@7"}))
    with pytest.raises(TransactionLost, match=r"no checkpoint is kept.*there is no earlier checkpoint: --from none"):
        run(sink, started(metadata(7, 6, 7, base=5)))
    assert log == ["settle t@6,t@7"]


def test_a_loss_without_proof_is_refused_with_the_ways_on() -> None:
    log: list[str] = []
    with pytest.raises(TransactionLost, match=r"(?s)nothing proves.*--accept-loss t@7\. To write it again: --from 6 "):
        run(LosingSink(log, frozenset({"t@7"}), certain=False), started(metadata(7, 7, base=6), metadata(6)))
    assert log == ["settle t@7"]


def test_what_was_healed_before_is_not_settled_again() -> None:
    log: list[str] = []
    found, _ = run(LosingSink(log), started(metadata(7, 7, 8), lost=["t@7"]))
    assert log == ["settle t@8", "confirm t@8", "abort lingering"]
    assert found.restored == metadata(7, 7, 8)


def test_a_loss_that_a_person_accepted_is_stored_and_the_rest_is_committed() -> None:
    log: list[str] = []
    context = replace(CONTEXT, settings=RunSettings(accept_loss=("t@6", "other")))
    sink = LosingSink(log, frozenset({"t@6"}), held=frozenset({"t@7"}))
    found, client = run(sink, started(metadata(7, 6, 7, base=5), metadata(5)), context)
    assert log == ["settle t@6,t@7", "commit t@7", "confirm t@7", "store t@6 from {}", "abort lingering"]
    assert found.restored == metadata(7, 6, 7, base=5)
    assert "accepted, by --accept-loss" in client.messages[0]


def test_accepting_another_loss_accepts_nothing() -> None:
    context = replace(CONTEXT, settings=RunSettings(accept_loss=("t@5",)))
    with pytest.raises(TransactionLost):
        run(LosingSink([], frozenset({"t@7"})), started(metadata(7, 7)), context)


def test_whoever_names_another_checkpoint_to_restore_has_decided_about_the_loss() -> None:
    log: list[str] = []
    asked = replace(started(metadata(7, 7)), restored=metadata(5))
    found, _ = run(LosingSink(log, frozenset({"t@7"})), asked)
    assert log == ["settle t@7", "abort lingering"]
    assert found.restored == metadata(5)


def test_a_loss_whose_input_is_gone_is_refused_with_what_is_gone_and_nothing_is_touched() -> None:
    log: list[str] = []
    sink = LosingSink(log, frozenset({"t@6"}), held=frozenset({"t@7"}))
    latest = started(metadata(7, 6, 7, base=5), metadata(5))
    with pytest.raises(TransactionLost, match=r"is gone: from in\[0\]@50 on.*--accept-loss t@6\.") as refused:
        run(sink, latest, gone=[5])
    assert "--from" not in str(refused.value), "no earlier checkpoint helps"
    assert log == ["settle t@6,t@7"]


def test_a_loss_whose_input_is_gone_is_accepted_by_name_and_the_latest_checkpoint_is_restored() -> None:
    context = replace(CONTEXT, settings=RunSettings(accept_loss=("t@7",)))
    found, _ = run(LosingSink([], frozenset({"t@7"})), started(metadata(7, 7, base=6), metadata(6)), context, gone=[6])
    assert found.restored == metadata(7, 7, base=6)


def decided() -> StartedAttempt:
    """What an earlier attempt has decided to write again, from checkpoint 6."""
    restored = replace(metadata(6), checkpoint_id=CheckpointId(7))
    return replace(started(metadata(7, 7, base=6), lost=["t@7"]), restored=restored)


def test_what_was_decided_to_be_written_again_is_while_its_input_is_there() -> None:
    found, client = run(LosingSink([]), decided())
    assert found.restored == decided().restored
    assert client.messages == []


def test_what_was_decided_to_be_written_again_is_refused_by_name_when_its_input_has_gone_since() -> None:
    log: list[str] = []
    with pytest.raises(TransactionLost, match=r"to be written again, but .* from in\[0\]@60 on.*Lost: t@7\."):
        run(LosingSink(log), decided(), gone=[6])
    assert "abort lingering" not in log


def test_what_was_decided_to_be_written_again_can_be_accepted_when_its_input_has_gone_since() -> None:
    log: list[str] = []
    context = replace(CONTEXT, settings=RunSettings(accept_loss=("t@7",)))
    found, client = run(LosingSink(log), decided(), context, gone=[6])
    assert found.restored == metadata(7, 7, base=6)
    assert "store t@7 from {}" in log
    assert "accepted, by --accept-loss" in client.messages[0]
