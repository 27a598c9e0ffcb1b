"""What was written since a snapshot is stored on a disk that fails, or loses power, at every single step."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.state.faulty import Store
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
from twopc.errors import CheckpointDeclined
from twopc.protocol.facts import StateHandle

WRITTEN = b"what was written since"
BOTH = {
    "000001.sst": b"1" * 500,
    "MANIFEST-1": b"manifest of 1",
    "CURRENT": b"MANIFEST-1\n",
    "changes.json": WRITTEN,
}


def made(folder: Path) -> Store:
    store = Store(folder / "store", folder / "local")
    with under_files(SteppedDisk()):
        store.put(1, store.snapshot(1))
    return store


def steps(folder: Path) -> range:
    store = made(folder)
    return range(1, count_steps(lambda: store.put_changes(2, WRITTEN)) + 1)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_wherever_the_disk_fails_the_checkpoint_is_declined_and_the_next_is_stored(
    tmp_path: Path, fault: Fault
) -> None:
    for at in steps(tmp_path / "counted"):
        store = made(tmp_path / str(at))
        disk = FailingDisk(fault, at)
        handle, reason = put_or_reason(store, disk)
        if handle is not None:
            assert disk.failed == 0 or disk.steps[at - 1] == "delete", f"step {at} failed and nobody said so"
            assert store.fetched(handle, "second") == BOTH, at
        else:
            assert f"{store.root}/chk-2/subtask-0" in reason, at
            if fault.name != "broken-for-long":
                assert store.names() == ["chk-1/subtask-0.json"], f"step {at}, {disk.steps[at - 1]}, left something"
        with under_files(SteppedDisk()):
            assert store.fetched(store.put_changes(3, WRITTEN), "third") == BOTH, at


@pytest.mark.parametrize("lost", ["nothing", "everything", "names", "contents", "one", "all but one"])
def test_wherever_power_is_lost_there_is_a_whole_snapshot_or_none(tmp_path: Path, lost: str) -> None:
    for at in (*steps(tmp_path / "counted"), 1_000):
        for chosen in range(12 if "one" in lost else 1):
            folder = tmp_path / f"{at}-{chosen}"
            store, trash = made(folder), folder / "trash"
            trash.mkdir()
            disk = StoppingDisk(trash, at)
            handle = put_until_power_is_lost(store, disk)
            disk.lose(disk.chooser(lost, chosen))
            if handle is not None:
                assert store.fetched(handle, "second") == BOTH, f"acknowledged, then lost {lost}"
            else:
                assert store.stored(2) in (None, BOTH), at
            if chosen >= disk.count_unsynced():
                break


def put_or_reason(store: Store, disk: FailingDisk) -> tuple[StateHandle | None, str]:
    """Put the changes on this disk; return their handle, or why the checkpoint was declined."""
    with under_files(disk):
        try:
            return store.put_changes(2, WRITTEN), ""
        except CheckpointDeclined as error:
            return None, str(error)


def put_until_power_is_lost(store: Store, disk: StoppingDisk) -> StateHandle | None:
    with under_files(disk):
        try:
            return store.put_changes(2, WRITTEN)
        except PowerCut:
            return None
