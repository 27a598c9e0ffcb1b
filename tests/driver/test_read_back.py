"""A job goes back to a checkpoint before the latest."""

from __future__ import annotations

import pytest

from twopc.driver.restore_checks import goes_back
from twopc.protocol.checkpoints import CheckpointKind
from twopc.protocol.facts import CheckpointMetadata
from twopc.protocol.ids import AttemptId, CheckpointId
from twopc.protocol.planned_starts import NOTHING_WITNESSED, Witnessed


def checkpoint(number: int) -> CheckpointMetadata:
    return CheckpointMetadata("j", CheckpointId(number), AttemptId(2), 1, CheckpointKind.PERIODIC, 0, 0, ())


@pytest.mark.parametrize(
    ("restored", "witnessed", "back"),
    [
        (checkpoint(7), NOTHING_WITNESSED, True),
        (checkpoint(8), NOTHING_WITNESSED, False),
        (checkpoint(8), Witnessed(CheckpointId(8), AttemptId(2)), False),
        (None, NOTHING_WITNESSED, False),
    ],
)
def test_only_to_one_that_is_older_than_the_latest(
    restored: CheckpointMetadata | None, witnessed: Witnessed, back: bool
) -> None:
    assert goes_back(checkpoint(8), restored, witnessed) is back


def test_in_a_copy_to_its_latest_where_the_job_has_gone_on_since() -> None:
    assert goes_back(checkpoint(8), checkpoint(8), Witnessed(CheckpointId(9), AttemptId(3)))
