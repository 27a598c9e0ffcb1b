"""The ledger and its storage, on disk and in memory: one contract."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest

from coordinator.checkpoint import CheckpointRequest, PendingCheckpoint, completion_record
from coordinator.ledger import Ledger
from tests.coordinator.kit import JOB, SETTINGS, FaultyStorage, checkpoint, snapshot
from twopc.errors import CheckpointCorrupted, Fenced
from twopc.protocol.attempt_facts import AttemptStarted
from twopc.protocol.checkpoints import CheckpointKind
from twopc.protocol.codec import to_json
from twopc.protocol.envelope import encode_fact
from twopc.protocol.facts import CheckpointMetadata
from twopc.protocol.ids import AttemptId, CheckpointId
from twopc.protocol.ledger_facts import CheckpointReserved, CommittablesConfirmed
from twopc.protocol.messages import Ack
from twopc.protocol.times import Instant
from twopc.storage.local import LocalStore
from twopc.storage.memory import MemoryStore
from twopc.storage.store import CheckpointStore

NOW = Instant(0, 1_700_000_000_000)


@pytest.fixture(params=["folder", "memory"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> CheckpointStore:
    return LocalStore(tmp_path / JOB) if request.param == "folder" else MemoryStore()


def started(attempt: int) -> AttemptStarted:
    return AttemptStarted(AttemptId(attempt), 1, SETTINGS, CheckpointId(0), 0)


def metadata(number: int, attempt: int = 1) -> CheckpointMetadata:
    request = CheckpointRequest(CheckpointKind.PERIODIC, NOW)
    pending = PendingCheckpoint(checkpoint(number), AttemptId(attempt), request, 1, NOW)
    pending.acknowledge(Ack(checkpoint(number), snapshot(0, f"t{number}")), NOW)
    return pending.metadata(JOB, NOW)


def reserve(ledger: Ledger, number: int, *forgotten: int) -> None:
    attempt = ledger.state.current
    ledger.store(
        CheckpointReserved(
            checkpoint(number), attempt, CheckpointKind.PERIODIC, tuple(checkpoint(each) for each in forgotten)
        )
    )


def complete(ledger: Ledger, number: int, *forgotten: int) -> None:
    reserve(ledger, number, *forgotten)
    stored = metadata(number, ledger.state.current)
    ledger.store(stored)
    ledger.store(completion_record(stored))


def test_a_new_ledger_knows_nothing_and_creates_nothing(storage: CheckpointStore) -> None:
    state = Ledger(JOB, storage).state
    assert (state.current, state.last_reserved, state.completed) == (0, 0, ())
    assert storage.names() == []


def test_what_was_stored_is_there_when_the_ledger_is_opened_again(storage: CheckpointStore) -> None:
    ledger = Ledger(JOB, storage)
    ledger.store(started(1))
    complete(ledger, 1)
    ledger.store(CommittablesConfirmed(checkpoint(1), ("t1",)))
    reserve(ledger, 2)
    again = Ledger(JOB, storage)
    assert again.state == ledger.state
    assert again.state.last_reserved == 2
    assert again.metadata(checkpoint(1)) == metadata(1)


def test_a_second_writer_is_fenced_as_soon_as_both_write(storage: CheckpointStore) -> None:
    first = Ledger(JOB, storage)
    first.store(started(1))
    second = Ledger(JOB, storage)
    second.store(started(2))
    with pytest.raises(Fenced, match="another coordinator"):
        reserve(first, 1)
    reserve(second, 1)
    assert Ledger(JOB, storage).state == second.state


def test_a_second_writer_is_fenced_even_where_its_number_is_free_again(storage: CheckpointStore) -> None:
    first = Ledger(JOB, storage)
    first.store(started(1))
    second = Ledger(JOB, storage)
    second.store(started(2))
    second.store(started(3))
    assert entry_numbers(storage)[0] > 2
    with pytest.raises(Fenced, match="after"):
        reserve(first, 1)
    assert Ledger(JOB, storage).state == second.state


def test_an_entry_that_a_fenced_writer_could_not_take_back_does_no_harm(
    storage: CheckpointStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Ledger(JOB, storage)
    first.store(started(1))
    second = Ledger(JOB, storage)
    second.store(started(2))
    with monkeypatch.context() as patched:
        # As when the power fails before the deletion is durable.
        patched.setattr(storage, "delete", lambda name: None)
        with pytest.raises(Fenced):
            reserve(first, 1)
    assert Ledger(JOB, storage).state == second.state


def test_a_fact_that_was_not_stored_changes_nothing() -> None:
    storage = FaultyStorage()
    ledger = Ledger(JOB, storage)
    ledger.store(started(1))
    before = ledger.state
    storage.is_full = lambda name, data: True
    with pytest.raises(OSError, match="No space"):
        reserve(ledger, 1)
    assert ledger.state == before
    storage.is_full = lambda name, data: False
    reserve(ledger, 1)
    assert Ledger(JOB, storage).state == ledger.state


def test_a_summary_that_could_not_be_stored_loses_nothing() -> None:
    storage = FaultyStorage()
    ledger = Ledger(JOB, storage, summary_every=1)
    ledger.store(started(1))
    reserve(ledger, 1)
    storage.is_full = lambda name, data: b'"summary"' in data
    ledger.compact()
    assert len(entry_numbers(storage)) == 2
    assert Ledger(JOB, storage).state == ledger.state


def entry_numbers(storage: CheckpointStore) -> list[int]:
    return sorted(int(name.removeprefix("ledger/").removesuffix(".json")) for name in storage.names("ledger/"))


def test_an_attempt_is_stored_as_one_entry_that_sums_up_those_before(storage: CheckpointStore) -> None:
    ledger = Ledger(JOB, storage)
    ledger.store(started(1))
    reserve(ledger, 1)
    before = entry_numbers(storage)[-1]
    ledger.store(started(2))
    assert entry_numbers(storage) == [before + 1]


def test_the_number_of_entries_is_bounded(storage: CheckpointStore) -> None:
    ledger = Ledger(JOB, storage, summary_every=10)
    ledger.store(started(1))
    for number in range(1, 60):
        reserve(ledger, number)
        ledger.compact()
        assert len(entry_numbers(storage)) <= 11
    assert Ledger(JOB, storage).state == ledger.state


def test_whatever_is_left_of_summed_up_entries_replays(storage: CheckpointStore) -> None:
    ledger = Ledger(JOB, storage, summary_every=1_000)
    ledger.store(started(1))
    for number in range(1, 5):
        reserve(ledger, number)
    kept = {number: storage.get(f"ledger/{number:012d}.json") for number in entry_numbers(storage)}
    ledger.store(started(2))
    expected = ledger.state
    for count in range(len(kept) + 1):
        for left in combinations(kept, count):
            names = [f"ledger/{number:012d}.json" for number in left]
            for name, number in zip(names, left, strict=True):
                storage.create_once(name, kept[number])
            assert Ledger(JOB, storage).state == expected
            storage.delete(names)


def test_a_missing_entry_is_named(storage: CheckpointStore) -> None:
    ledger = Ledger(JOB, storage)
    ledger.store(started(1))
    reserve(ledger, 1)
    reserve(ledger, 2)
    missing = entry_numbers(storage)[-2]
    storage.delete([f"ledger/{missing:012d}.json"])
    with pytest.raises(CheckpointCorrupted, match=rf"{missing:012d}\.json is missing"):
        Ledger(JOB, storage)


def damage(data: bytes) -> list[bytes]:
    half = len(data) // 2
    flipped = bytes([*data[:half], data[half] ^ 1, *data[half + 1 :]])
    return [b"", data[:-20], data[:half], flipped, b"\xff" + data[1:], b"[]", encode_fact("other", {})]


def test_a_damaged_newest_entry_is_named(storage: CheckpointStore) -> None:
    ledger = Ledger(JOB, storage)
    ledger.store(started(1))
    reserve(ledger, 1)
    name = f"ledger/{entry_numbers(storage)[-1]:012d}.json"
    sound = storage.get(name)
    for damaged in damage(sound):
        storage.delete([name])
        storage.create_once(name, damaged)
        with pytest.raises(CheckpointCorrupted, match=f"{JOB}/{name}"):
            Ledger(JOB, storage)


def test_an_entry_that_contradicts_those_before_it_is_named(storage: CheckpointStore) -> None:
    ledger = Ledger(JOB, storage)
    ledger.store(started(1))
    reserve(ledger, 5)
    newest = entry_numbers(storage)[-1]
    repeated = storage.get(f"ledger/{newest:012d}.json")
    storage.create_once(f"ledger/{newest + 1:012d}.json", repeated)
    with pytest.raises(CheckpointCorrupted, match=rf"{newest + 1:012d}\.json"):
        Ledger(JOB, storage)


def test_damaged_metadata_is_named(storage: CheckpointStore) -> None:
    ledger = Ledger(JOB, storage)
    ledger.store(started(1))
    complete(ledger, 1)
    sound = storage.get("chk-1/metadata.json")
    another = encode_fact("checkpoint-metadata", to_json(metadata(2)))
    for damaged in [*damage(sound), another]:
        storage.delete(["chk-1/metadata.json"])
        storage.create_once("chk-1/metadata.json", damaged)
        with pytest.raises(CheckpointCorrupted, match=f"{JOB}/chk-1/metadata.json"):
            ledger.metadata(checkpoint(1))
    storage.delete(["chk-1/metadata.json"])
    with pytest.raises(CheckpointCorrupted, match="missing"):
        ledger.metadata(checkpoint(1))


def test_pruning_removes_forgotten_checkpoints_and_aborted_ones_older_than_the_newest(storage: CheckpointStore) -> None:
    ledger = Ledger(JOB, storage)
    ledger.store(started(1))
    complete(ledger, 1)
    reserve(ledger, 2)
    storage.create_once("chk-2/data", b"of an aborted checkpoint")
    complete(ledger, 3)
    reserve(ledger, 4, 1)
    storage.create_once("chk-4/data", b"in flight")
    ledger.prune()
    assert storage.parts() == ["chk-3", "chk-4", "ledger"]


def test_pruning_keeps_everything_before_the_first_completion(storage: CheckpointStore) -> None:
    ledger = Ledger(JOB, storage)
    ledger.store(started(1))
    reserve(ledger, 1)
    storage.create_once("chk-1/data", b"in flight")
    ledger.prune()
    assert "chk-1" in storage.parts()


class LosingStore(MemoryStore):
    """One whose answers are lost, though it did as it was told."""

    def create_once(self, name: str, data: bytes) -> None:
        super().create_once(name, data)
        raise OSError(110, "Connection timed out")


def test_an_entry_whose_answer_was_lost_is_stored_by_trying_again_and_fences_nobody() -> None:
    losing = LosingStore()
    ledger = Ledger(JOB, losing)
    with pytest.raises(OSError, match="timed out"):
        ledger.store(started(1))
    assert ledger.state.current == 0
    ledger._store = MemoryStore(losing.data)
    ledger.store(started(1))
    reserve(ledger, 1)
    assert Ledger(JOB, MemoryStore(losing.data)).state == ledger.state


class StrickenStore(MemoryStore):
    """One that is away for some calls, and may do what it was asked for only when it is back."""

    def __init__(self, data: dict[str, bytes] | None = None) -> None:
        super().__init__(data)
        self.away = 0
        self.first_is_late = False
        self._late: list[tuple[str, bytes]] = []

    def create_once(self, name: str, data: bytes) -> None:
        if self.away and self.first_is_late:
            self.first_is_late = False
            self._late.append((name, data))
        self._answer()
        for each in self._late:
            super().create_once(*each)
        self._late.clear()
        super().create_once(name, data)

    def names(self, prefix: str = "") -> list[str]:
        self._answer()
        return super().names(prefix)

    def _answer(self) -> None:
        if self.away:
            self.away -= 1
            raise OSError(110, "Connection timed out")


@pytest.mark.parametrize("tries", [1, 2, 3])
def test_an_entry_that_the_store_carries_out_after_several_tries_fences_nobody(tries: int) -> None:
    storage = StrickenStore()
    ledger = Ledger(JOB, storage)
    ledger.store(started(1))
    storage.away, storage.first_is_late = tries, True
    for kind in list(CheckpointKind)[1 : tries + 1]:
        with pytest.raises(OSError, match="timed out"):
            ledger.store(CheckpointReserved(checkpoint(1), AttemptId(1), kind))
    reserve(ledger, 1)
    assert Ledger(JOB, MemoryStore(storage.data)).state == ledger.state


def test_an_entry_that_nobody_could_look_behind_is_stored_by_trying_again(monkeypatch: pytest.MonkeyPatch) -> None:
    storage = StrickenStore()
    ledger = Ledger(JOB, storage)
    create_once = storage.create_once

    def create_and_leave(name: str, data: bytes) -> None:
        create_once(name, data)
        storage.away = 1

    with monkeypatch.context() as patch:
        patch.setattr(storage, "create_once", create_and_leave)
        with pytest.raises(OSError, match="timed out"):
            ledger.store(started(1))
    ledger.store(started(2))
    assert Ledger(JOB, MemoryStore(storage.data)).state == ledger.state


def test_two_ledgers_that_store_the_same_fact_are_told_apart_by_their_creators(storage: CheckpointStore) -> None:
    first, second = Ledger(JOB, storage), Ledger(JOB, storage)
    first.store(started(1))
    with pytest.raises(Fenced):
        second.store(started(1))


def test_what_crashes_left_is_swept(tmp_path: Path) -> None:
    root = tmp_path / JOB
    ledger = Ledger(JOB, LocalStore(root))
    ledger.store(started(1))
    (root / "ledger" / ".tmp-1").write_bytes(b"x")
    ledger.prune()
    assert {path.name for path in root.iterdir()} == {"ledger"}
    assert [path.name for path in (root / "ledger").iterdir() if path.name.startswith(".")] == [".twins"]
