"""What the operators of the drills' job must have told: the job agrees in memory, and whatever is wrong is found."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable

import pytest

from tests.counting.numbered_input import NumberedInput
from tests.crash_cells.every_operator import CHANGES, DEAD, NAMES, TOLD, add_operators, read
from tests.crash_cells.expected_output import OperatorOutput, changes, complaints, names, read_operator_output
from twopc import Job, KafkaSource, Record
from twopc.testing import MemoryRun
from twopc.testing.topics import Read

SOURCE = NumberedInput(tuple(b"k%d" % number for number in range(13)), 2, 2_400)
KINDS = {"joined", "timer", "final", "late", "rest", "pair", "named", "kept", "full", "hopping", "session", "sliding"}

Found = tuple[OperatorOutput, Counter[bytes]]


@pytest.fixture(scope="module")
def found() -> Found:
    """What the job tells in memory, and its dead letters."""
    with pytest.MonkeyPatch.context() as patch:
        for variable in (CHANGES, NAMES, TOLD, DEAD):
            patch.setenv(variable, variable.lower())
        job = Job("told")
        add_operators(job, read(job, KafkaSource("numbers")))
        with MemoryRun(job, partitions=2, parallelism=2) as run:
            inputs = ((NAMES.lower(), names()), (CHANGES.lower(), changes(SOURCE)), ("numbers", SOURCE.writes()))
            for topic, writes in inputs:
                for write in writes:
                    run.send_raw(topic, write.value, write.key, timestamp=write.timestamp, partition=write.partition)
            run.checkpoint()
            told = read_operator_output(map(_as_read, run.read(TOLD.lower())))
            return told, Counter(record.value for record in run.read(DEAD.lower()))


def test_what_the_job_tells_is_what_the_input_makes(found: Found) -> None:
    assert {what for what, _ in found[0]} == KINDS
    assert list(complaints(SOURCE, *found, drained=False)) == []


def test_what_a_drain_would_tell_is_missing_without_one(found: Found) -> None:
    missing = list(complaints(SOURCE, *found, drained=True))
    assert {complaint.split()[0] for complaint in missing} == {
        "timer",
        "final",
        "pair",
        "hopping",
        "session",
        "sliding",
    }


@pytest.mark.parametrize("what", sorted(KINDS))
@pytest.mark.parametrize(
    "spoil",
    [lambda told: told[1:], lambda told: [*told, told[-1]], lambda told: [told[1], told[0], *told[2:]]],
    ids=["lost", "doubled", "reordered"],
)
def test_what_is_wrong_is_found(found: Found, what: str, spoil: Callable[[list[object]], list[object]]) -> None:
    told, dead = found
    of = next(each for each, rows in told.items() if each[0] == what and len(rows) > 1)
    assert list(complaints(SOURCE, {**told, of: spoil(list(told[of]))}, dead, drained=False)) != []


def test_a_dead_letter_that_is_lost_or_doubled_is_found(found: Found) -> None:
    told, dead = found
    for wrong in (dead - Counter([b"0"]), dead + Counter([b"0"])):
        assert [each.split(":")[0] for each in complaints(SOURCE, told, wrong, drained=False)] == ["dead letters"]


def _as_read(record: Record) -> Read:
    key = record.key if isinstance(record.key, bytes) else b"%d" % record.key
    return Read("", 0, 0, key, json.dumps(record.value).encode(), 0)
