"""A snapshot is stored and fetched on a disk that fails, and on one that loses power, at every single step."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.state.faulty import Store, contents
from tests.storage.disks import (
    FAULTS,
    FailingDisk,
    Fault,
    PowerCut,
    SteppedDisk,
    StoppingDisk,
    count_steps,
    under_files,
)
from twopc.errors import CheckpointDeclined, Unavailable
from twopc.protocol.facts import StateHandle

each_fault = pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)


@pytest.fixture
def new(tmp_path: Path) -> Callable[[], Store]:
    """Makes stores that have nothing to do with each other, each with one snapshot in it."""
    made: list[Store] = []

    def make() -> Store:
        store = Store(tmp_path / f"store-{len(made)}", tmp_path / f"local-{len(made)}")
        made.append(store)
        with under_files(SteppedDisk()):
            store.put(1, store.snapshot(1))
        return store

    return make


def steps_of_a_put(store: Store) -> int:
    folder = store.snapshot(2)
    return count_steps(lambda: store.put(2, folder))


@each_fault
def test_wherever_the_disk_fails_the_checkpoint_is_declined_and_the_next_is_stored(
    new: Callable[[], Store], fault: Fault
) -> None:
    for at in range(1, steps_of_a_put(new()) + 1):
        store = new()
        second, disk = store.snapshot(2), FailingDisk(fault, at)
        handle, reason = put_or_reason(store, second, disk)
        if handle is not None:
            assert disk.failed == 0 or disk.steps[at - 1] == "delete", f"step {at} failed and nobody said so"
            assert store.fetched(handle, "second") == contents(second), at
            continue
        assert f"{store.root}/chk-2/subtask-0" in reason, at
        if fault.name != "broken-for-long":
            assert store.names() == ["chk-1/subtask-0.json"], f"step {at}, {disk.steps[at - 1]}, left something"
        third = store.snapshot(3)
        with under_files(SteppedDisk()):
            assert store.fetched(store.put(3, third), "third") == contents(third), at


@each_fault
def test_nothing_that_a_failed_put_leaves_has_the_name_of_a_snapshot_without_its_contents(
    new: Callable[[], Store], fault: Fault
) -> None:
    for at in range(1, steps_of_a_put(new()) + 1):
        store = new()
        second = store.snapshot(2)
        with under_files(FailingDisk(fault, at)), suppress(CheckpointDeclined):
            store.put(2, second)
        left = store.stored(2)
        assert left is None or left == contents(second)


@pytest.mark.parametrize("lost", ["nothing", "everything", "names", "contents", "one", "all but one"])
def test_wherever_power_is_lost_there_is_a_whole_snapshot_or_none(
    new: Callable[[], Store], tmp_path: Path, lost: str
) -> None:
    for at in range(1, steps_of_a_put(new()) + 2):
        for chosen in range(12 if "one" in lost else 1):
            store = new()
            second = store.snapshot(2)
            trash = tmp_path / f"trash-{store.root.name}"
            trash.mkdir()
            disk = StoppingDisk(trash, at)
            for path in second.iterdir():
                if path.name not in (store.stored(1) or {}):
                    disk.unsynced_file(path)
            handle = put_until_power_is_lost(store, disk, second)
            disk.lose(disk.chooser(lost, chosen))
            if handle is not None:
                assert store.fetched(handle, "second") == contents_of_second(), f"acknowledged, then lost {lost}"
            else:
                assert store.stored(2) in (None, contents_of_second()), at
            if chosen >= disk.count_unsynced():
                break


def put_or_reason(store: Store, folder: Path, disk: FailingDisk) -> tuple[StateHandle | None, str]:
    """Put snapshot 2 on this disk; return its handle, or why it was declined."""
    with under_files(disk):
        try:
            return store.put(2, folder), ""
        except CheckpointDeclined as error:
            return None, str(error)


def put_until_power_is_lost(store: Store, disk: StoppingDisk, folder: Path) -> StateHandle | None:
    with under_files(disk):
        try:
            return store.put(2, folder)
        except PowerCut:
            return None


def contents_of_second() -> dict[str, bytes]:
    return {
        "000001.sst": b"1" * 500,
        "000002.sst": b"2" * 500,
        "MANIFEST-1": b"manifest of 2",
        "CURRENT": b"MANIFEST-1\n",
    }


def test_an_sst_whose_sync_failed_is_never_stored_with_other_bytes(new: Callable[[], Store]) -> None:
    store = new()
    second = store.snapshot(2)
    with under_files(FailingSeal()), pytest.raises(CheckpointDeclined):
        store.put(2, second)
    path = store.local / "000002.sst"
    kept = path.stat()
    path.write_bytes(b"\0" * kept.st_size)
    os.utime(path, ns=(kept.st_mtime_ns, kept.st_mtime_ns))
    third = store.snapshot(3)
    with pytest.raises(CheckpointDeclined, match=r"000002\.sst changed"):
        store.put(3, third)


class FailingSeal(FailingDisk):
    """Lets the first sync of a file that another program wrote fail."""

    def __init__(self) -> None:
        super().__init__(FAULTS[3], 0)
        self._sealing = False

    def before(self, call: str, *arguments: object) -> None:
        if call == "sync" and self._sealing:
            raise OSError(5, "Input/output error")
        self._sealing = call == "make_private"


@each_fault
def test_wherever_the_disk_of_a_worker_fails_a_fetch_says_so_and_leaves_nothing_to_open(
    new: Callable[[], Store], fault: Fault
) -> None:
    counted = new()
    handle = counted.put(2, counted.snapshot(2))
    steps = count_steps(lambda: counted.storage.fetch(handle, counted.local / "work"))
    for at in range(1, steps + 1):
        store = new()
        with under_files(SteppedDisk()):
            handle = store.put(2, store.snapshot(2))
        disk = FailingDisk(fault, at)
        reason = fetch_or_reason(store, handle, disk)
        if reason is None:
            assert disk.failed == 0, f"step {at} failed and nobody said so"
            assert contents(store.local / "work") == contents_of_second()
        else:
            assert str(store.local / "work") in reason
            assert fault.name == "broken-for-long" or not (store.local / "work").exists(), at
        assert store.fetched(handle, "again") == contents_of_second()


def fetch_or_reason(store: Store, handle: StateHandle, disk: FailingDisk) -> str | None:
    with under_files(disk):
        try:
            store.storage.fetch(handle, store.local / "work")
        except Unavailable as error:
            return str(error)
    return None
