"""From where lost output may be written again: over every short life of a subtask, against what was really visible."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations, product

import pytest

from twopc.errors import CheckpointCorrupted
from twopc.protocol.checkpoints import CheckpointKind
from twopc.protocol.facts import CheckpointMetadata, Committable, SplitPosition, StateHandle, SubtaskSnapshot
from twopc.protocol.healing import Fate, Healed, Refused, plan, restored_from
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex
from twopc.protocol.messages import Complete, Trigger
from twopc.protocol.subtask_state import PreCommitted, SubtaskState

SUBTASK = SubtaskIndex(0)
WHOLE = (Fate.COMMITTED, Fate.NO_OUTPUT)
RESTORED = CheckpointId(1)
"""Completed by attempt 1, and what attempt 2, whose life is played, was restored from."""


@dataclass(frozen=True)
class Taken:
    """A checkpoint of attempt 2: whether it completed, had output, and was seen to be committed at once."""

    number: int
    completed: bool
    wrote: bool
    seen: bool


def metadata(number: int, attempt: int, snapshot: SubtaskSnapshot) -> CheckpointMetadata:
    kind = CheckpointKind.PERIODIC
    return CheckpointMetadata("job", CheckpointId(number), AttemptId(attempt), 1, kind, 0, 0, (snapshot,))


def snapshot(
    number: int, committables: Sequence[Committable] = (), base: int = 0, *, partitions: Sequence[int] = (0,)
) -> SubtaskSnapshot:
    return SubtaskSnapshot.of(
        SUBTASK,
        tuple(SplitPosition(f"in[{each}]", each, [number, "id"]) for each in partitions),
        StateHandle(f"chk-{number}/subtask-0", "digest", 0, 0),
        tuple(committables),
        base=CheckpointId(base),
    )


def committable(number: int) -> Committable:
    return Committable(f"t@{number}", CheckpointId(number), SUBTASK, {})


def play(life: Sequence[Taken]) -> list[CheckpointMetadata]:
    """Let the real state machine live it; return the completed checkpoints, the restored one first."""
    state = SubtaskState(RESTORED)
    completed = [metadata(RESTORED, 1, snapshot(RESTORED))]
    for taken in life:
        number = CheckpointId(taken.number)
        state.on(Trigger(number))
        state.pre_committed(PreCommitted(number, (committable(number),) if taken.wrote else (), ()))
        if taken.completed:
            completed.append(metadata(number, 2, snapshot(number, state.committables, state.base)))
            state.on(Complete(number))
            if taken.seen:
                state.committed(number)
    return completed


def lives() -> Iterator[tuple[Taken, ...]]:
    """Checkpoints 2 to 4, of which the last completed and its commit is what is in question."""
    for flags in product(product([True, False], repeat=3), repeat=2):
        early = tuple(Taken(number, *each) for number, each in enumerate(flags, start=2))
        for wrote in (True, False):
            yield (*early, Taken(4, True, wrote, False))


def exact_bases(life: Sequence[Taken], kept: Sequence[CheckpointMetadata], fates: dict[str, Fate]) -> set[CheckpointId]:
    """From where a replay writes exactly what is missing: all up to there is visible, and nothing behind it is."""

    def visible(taken: Taken) -> bool:
        return fates.get(f"t@{taken.number}", Fate.COMMITTED) is Fate.COMMITTED

    wrote = [taken for taken in life if taken.wrote and fates.get(f"t@{taken.number}") is not Fate.NO_OUTPUT]
    return {
        each.checkpoint_id
        for each in kept
        if all(visible(taken) == (taken.number <= each.checkpoint_id) for taken in wrote)
    }


def missing(fates: Mapping[str, Fate]) -> tuple[str, ...]:
    return tuple(name for name, fate in fates.items() if fate not in WHOLE)


@pytest.mark.parametrize("life", list(lives()), ids=str)
def test_a_loss_is_healed_from_the_newest_checkpoint_that_makes_it_exact_and_from_no_other_kind(
    life: tuple[Taken, ...],
) -> None:
    *earlier, latest = play(life)
    names = [item.name for item in latest.committables]
    for fated in product(Fate, repeat=len(names)):
        fates = dict(zip(names, fated, strict=True))
        if all(fate in WHOLE for fate in fated):
            assert plan(latest, fates, earlier, {}) == Healed({}, ())
            continue
        subsets = chain.from_iterable(combinations(earlier, size) for size in range(len(earlier) + 1))
        for kept in subsets:
            found = plan(latest, fates, kept, {})
            best = max(exact_bases(life, earlier, fates), default=None)
            if Fate.UNKNOWN in fated or best is None:
                assert isinstance(found, Refused), (fates, kept)
            elif best in {each.checkpoint_id for each in kept}:
                assert found == Healed({SUBTASK: best}, missing(fates)), (fates, kept)
            elif isinstance(found, Healed):
                assert found.bases[SUBTASK] in exact_bases(life, kept, fates), (fates, kept)


@pytest.mark.parametrize("empty", [[2], [4], [2, 4]], ids=str)
def test_a_transaction_without_output_stands_neither_before_nor_behind_a_loss(empty: list[int]) -> None:
    earlier = [metadata(number, 2, snapshot(number)) for number in (1, 2)]
    latest = metadata(5, 2, snapshot(5, [committable(number) for number in (*empty, 3, 5)], base=1))
    fates = {"t@3": Fate.ABORTED, "t@5": Fate.ABORTED} | {f"t@{number}": Fate.NO_OUTPUT for number in empty}
    assert plan(latest, fates, earlier, {}) == Healed({SUBTASK: CheckpointId(2)}, ("t@3", "t@5"))


def test_a_checkpoint_of_another_course_is_no_base() -> None:
    """The job was taken back from 5 to 2 by hand: what was written between them belongs to the old course."""
    latest = metadata(7, 3, snapshot(7, [committable(7)], base=2))
    old_course = metadata(5, 1, snapshot(5))
    assert isinstance(plan(latest, {"t@7": Fate.ABORTED}, [old_course], {}), Refused)
    named = metadata(2, 1, snapshot(2))
    assert plan(latest, {"t@7": Fate.ABORTED}, [named, old_course], {}) == Healed({SUBTASK: CheckpointId(2)}, ("t@7",))


def test_a_loss_at_the_very_first_checkpoint_is_refused() -> None:
    latest = metadata(1, 1, snapshot(1, [committable(1)]))
    found = plan(latest, {"t@1": Fate.ABORTED}, [], {})
    assert isinstance(found, Refused)
    assert "no checkpoint is kept" in found.why


def test_a_subtask_that_read_other_partitions_before_is_refused() -> None:
    latest = metadata(4, 2, snapshot(4, [committable(4)], base=3, partitions=(0,)))
    before = metadata(3, 1, snapshot(3, partitions=(0, 1)))
    found = plan(latest, {"t@4": Fate.ABORTED}, [before], {})
    assert isinstance(found, Refused)
    assert "read other splits" in found.why


def test_only_the_subtask_that_lost_something_is_restored_from_before() -> None:
    other = replace(snapshot(4), subtask=SubtaskIndex(1))
    latest = metadata(4, 2, snapshot(4, [committable(4)], base=3))
    latest = replace(latest, snapshots=(*latest.snapshots, other))
    before = metadata(3, 2, snapshot(3))
    restored = restored_from(latest, {SUBTASK: CheckpointId(3)}, [before])
    assert restored.checkpoint_id == 4
    assert restored.snapshots == (before.snapshots[0], other)


def test_a_base_that_is_gone_is_named() -> None:
    latest = metadata(4, 2, snapshot(4, [committable(4)], base=3))
    with pytest.raises(CheckpointCorrupted, match=r"checkpoint 3 .* can't be read"):
        restored_from(latest, {SUBTASK: CheckpointId(3)}, [])


def test_a_loss_whose_input_is_gone_is_refused_and_says_what_is_gone() -> None:
    latest = metadata(4, 2, snapshot(4, [committable(4)], base=3))
    before = metadata(3, 1, snapshot(3))
    gone = {position: f"{position.partition} from {position.position}" for position in before.positions}
    found = plan(latest, {"t@4": Fate.ABORTED}, [before], gone)
    assert isinstance(found, Refused)
    assert found.input_is_gone
    assert all(what in found.why for what in gone.values())
    elsewhere = dict.fromkeys(latest.positions, "it")
    assert isinstance(plan(latest, {"t@4": Fate.ABORTED}, [before], elsewhere), Healed), "only what must be read counts"


@pytest.mark.parametrize(("lost", "kept"), [("a", "b"), ("b", "a")])
def test_a_loss_beside_what_another_sink_committed_of_the_same_checkpoint_can_not_be_written_again(
    lost: str, kept: str
) -> None:
    items = [Committable(name, CheckpointId(3), SUBTASK, {}, name) for name in ("a", "b")]
    earlier = [metadata(2, 2, snapshot(2))]
    latest = metadata(3, 2, snapshot(3, items, base=2))
    refused = plan(latest, {lost: Fate.ABORTED, kept: Fate.COMMITTED}, earlier, {})
    assert isinstance(refused, Refused)
    assert "is committed, though" in refused.why
    assert isinstance(plan(latest, dict.fromkeys(("a", "b"), Fate.ABORTED), earlier, {}), Healed)
