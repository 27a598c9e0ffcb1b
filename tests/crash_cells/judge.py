"""The judge of a job under drill: compares what it has left with every invariant that one run can break.

Each check yields what is wrong, in words; nothing asks the code under test but to read its own files back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from tests.crash_cells.expected_output import complaints, read_operator_output
from tests.crash_cells.rig import Rig, numbered
from tests.leak_audit import Place, wait_until_clean
from twopc import events
from twopc.testing.topics import read_topic

_NEVER = frozenset({"TransactionLost", "CheckpointCorrupted", "ProtocolViolation"})

Check = Callable[[Rig], Iterator[str]]


def judge(rig: Rig, checks: Sequence[Check] | None = None) -> list[str]:
    """Return every violation of these checks, or of all, as sentences; none if all is as it must be."""
    return [violation for check in (CHECKS if checks is None else checks) for violation in check(rig)]


def nothing_is_left(rig: Rig) -> Iterator[str]:
    """No open transaction, no hidden output, no process, file or lock that should not be there."""
    place = Place(
        job=rig.job,
        bootstrap_servers=rig.bootstrap_servers,
        topics=rig.outputs,
        checkpoint_dir=rig.checkpoint_dir,
        marker=rig.marker,
        temporary=rig.temporary,
        empty=(rig.temporary,),
    )
    yield from map(str, wait_until_clean(place))


def output_is_the_inputs(rig: Rig) -> Iterator[str]:
    return rig.finished.judge_output()


def table_is_the_output(rig: Rig) -> Iterator[str]:
    """A table, where the job has one, holds what the topic does, and its folder nothing that it does not name."""
    if not rig.table.exists():
        return
    # Where no table is judged, as in torture, the examples need not be importable.
    from table_sink import Manifest, read_table

    written = Counter((record.value or b"").decode() for record in read_topic(rig.bootstrap_servers, rig.output))
    held = Counter(read_table(rig.table))
    if held != written:
        yield f"the table lacks {(written - held).total()} records, and has {(held - written).total()} too many"
    if left := {path.name for path in rig.table.glob("*.jsonl")} - set(Manifest.read(rig.table).files):
        yield f"the folder of the table has files that it does not name: {sorted(left)}"


def every_operator_told_what_the_input_makes(rig: Rig) -> Iterator[str]:
    """The outputs of all other operators, where the job has them, and its dead letters."""
    if rig.has_every_operator:
        told = read_operator_output(read_topic(rig.bootstrap_servers, rig.told))
        dead = Counter(record.value or b"" for record in read_topic(rig.bootstrap_servers, rig.dead_letters))
        yield from complaints(numbered(rig.records), told, dead, drained=rig.drained)


def state_is_recomputed(rig: Rig) -> Iterator[str]:
    return rig.finished.judge_state()


def positions_are_the_end(rig: Rig) -> Iterator[str]:
    return rig.finished.judge_positions()


def positions_never_go_back(rig: Rig) -> Iterator[str]:
    return rig.finished.judge_history()


def ids_never_repeat(rig: Rig) -> Iterator[str]:
    """Each checkpoint id was triggered and completed once, in ascending order within and over attempts."""
    for kind in (events.CheckpointTriggered, events.CheckpointCompleted):
        seen = [(event.attempt, event.checkpoint_id) for event in rig.events(kind)]
        # Several drivers of one job hear the same coordinator.
        by_attempt = list(dict.fromkeys(seen))
        ids = [checkpoint_id for _, checkpoint_id in sorted(by_attempt)]
        if any(later <= earlier for earlier, later in pairwise(ids)):
            yield f"checkpoint ids came out of order in {kind.__name__}, or twice: {sorted(by_attempt)}"


def no_loss_was_reported(rig: Rig) -> Iterator[str]:
    """Where no transaction can time out, none may be lost, nor said to be; what an outrun attempt says is no matter."""
    newest = 0
    for event in rig.events(events.JobEvent):
        newest = max(newest, event.attempt)
        outrun = event.attempt < newest
        if isinstance(event, events.AttemptFailed) and not outrun and event.error_type in _NEVER:
            yield f"attempt {event.attempt} failed with {event.error_type}: {event.message}"


CHECKS: tuple[Check, ...] = (
    nothing_is_left,
    output_is_the_inputs,
    table_is_the_output,
    every_operator_told_what_the_input_makes,
    state_is_recomputed,
    positions_are_the_end,
    positions_never_go_back,
    ids_never_repeat,
    no_loss_was_reported,
)
