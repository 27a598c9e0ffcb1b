"""What a subtask may say, and in which words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from coordinator.access import ERROR_KINDS_MAX, OPERATORS_MAX, PENDING_MAX, SAMPLES_MAX, admitted
from tests.coordinator.kit import checkpoint, snapshot
from twopc.errors import ProtocolViolation
from twopc.protocol.facts import StateHandle
from twopc.protocol.figures import RECORDS_IN, RECORDS_SKIPPED, SPLIT_LAG, FigureSample
from twopc.protocol.followed_times import NumberTimes
from twopc.protocol.messages import Ack, Committed, Decline, EndOfInput, Failed, Progress, ToCoordinator
from twopc.protocol.record_errors import RecordErrorKind
from twopc.rpc.redaction import TEXT_MAX, redact

HONEST = Ack(checkpoint(7), snapshot(1, "t", checkpoint_id=7))


@pytest.mark.parametrize("message", [HONEST, Committed(checkpoint(7)), EndOfInput(), Decline(checkpoint(7), "no room")])
def test_what_is_in_order_is_taken_as_it_is(message: ToCoordinator) -> None:
    assert admitted(message) == message


@pytest.mark.parametrize(
    "path",
    [
        "/etc",
        "../chk-7/subtask-1",
        "chk-7/../chk-7/subtask-1",
        "chk-6/subtask-1",
        "chk-7/subtask-0",
        "chk-7",
        "",
        "x\0",
    ],
)
@pytest.mark.parametrize("state", [HONEST.snapshot.state, StateHandle.inline("", {}, 0, 0)], ids=["in files", "small"])
def test_state_that_is_not_in_its_own_place_is_refused_without_naming_the_other(path: str, state: StateHandle) -> None:
    handle = replace(state, path=path)
    with pytest.raises(ProtocolViolation, match=r"elsewhere than in chk-7/subtask-1$"):
        admitted(replace(HONEST, snapshot=replace(HONEST.snapshot, state=handle)))


@pytest.mark.parametrize("duration", [float("nan"), float("inf"), -1.0])
@pytest.mark.parametrize("name", ["pause_ms", "store_ms", "pre_commit_ms", "write_ms"])
def test_a_duration_that_is_none_is_refused(name: str, duration: float) -> None:
    with pytest.raises(ProtocolViolation, match="duration"):
        admitted(replace(HONEST, **cast(Any, {name: duration})))


def test_an_acknowledgement_with_the_times_of_too_many_operators_is_refused() -> None:
    times = tuple(NumberTimes(f"operator-{number}", 0, 0) for number in range(OPERATORS_MAX + 1))
    assert admitted(replace(HONEST, times=times[1:]))
    with pytest.raises(ProtocolViolation, match="the times of more than 1000 operators"):
        admitted(replace(HONEST, times=times))


def test_text_is_bounded_and_names_no_place_of_a_machine() -> None:
    long = "x" * 10 * TEXT_MAX
    declined = admitted(Decline(checkpoint(7), "no room in /mnt/deep/folder"))
    assert declined == Decline(checkpoint(7), "no room in .../folder")
    failed = admitted(Failed(long, "sasl.password=hunter2", True))
    assert isinstance(failed, Failed)
    assert (len(failed.error_type), failed.message) == (TEXT_MAX, "sasl.password=***")
    progress = admitted(Progress(1, 1, None, long, (long,) * 2 * PENDING_MAX, slow="map(price) in /mnt/deep/job.py"))
    assert isinstance(progress, Progress)
    assert progress.open_transaction is not None
    assert len(progress.open_transaction) == TEXT_MAX
    assert progress.slow == "map(price) in .../job.py"
    assert [len(name) for name in progress.pending_transactions] == [TEXT_MAX] * PENDING_MAX


def test_what_is_told_of_records_that_went_wrong_is_bounded_and_holds_no_secret() -> None:
    kind = RecordErrorKind("orders", "map(priced)", "E" * 100_000, "record orders[0]@7: sasl.password=hunter2")
    progress = admitted(Progress(1, 1, None, None, new_record_errors=(kind,) * 100))
    assert isinstance(progress, Progress)
    assert len(progress.new_record_errors) == ERROR_KINDS_MAX
    said = progress.new_record_errors[0]
    assert (said.source, said.operator, len(said.error_type)) == ("orders", "map(priced)", TEXT_MAX)
    assert said.message == "record orders[0]@7: sasl.password=***"


def test_figures_are_bounded_named_fit_for_others_labelled_in_full_and_only_those_that_there_are() -> None:
    long = (FigureSample(("x" * 10 * TEXT_MAX,), 1),) * 2 * SAMPLES_MAX
    lags = (FigureSample(("lines", "/mnt/deep/folder/file.txt"), 7),) * 2
    unlike = (FigureSample(("lines",), 1), FigureSample(("lines", "upper", "more"), 1), FigureSample((), 1))
    skipped = FigureSample(("lines", "upper"), 2)
    sent = {
        RECORDS_IN.name: long,
        SPLIT_LAG.name: lags,
        RECORDS_SKIPPED.name: (*unlike, skipped),
        "of a newer worker": long,
    }
    progress = admitted(Progress(1, 1, None, None, figures=sent))
    assert isinstance(progress, Progress)
    assert progress.figures == {
        RECORDS_IN.name: (FigureSample((redact(long[0].labels[0]),), 1),) * SAMPLES_MAX,
        SPLIT_LAG.name: (FigureSample(("lines", ".../file.txt"), 7),) * 2,
        RECORDS_SKIPPED.name: (skipped,),
    }
    assert len(progress.figures[RECORDS_IN.name][0].labels[0]) == TEXT_MAX
