"""The simulated file system keeps what was synced when the power fails, and of the rest any part."""

from __future__ import annotations

import pytest

from tests.simulation.filesystem import SimDisk, SimFileSystem, SimPath

CHOICES = range(50)


def file_system() -> tuple[SimFileSystem, SimDisk]:
    return SimFileSystem(lambda what, path: None, lambda path, data: None), SimDisk()


def write(disk: SimDisk, path: SimPath, data: bytes, *, sync: bool) -> None:
    descriptor = disk.create(path)
    disk.write(descriptor, memoryview(data))
    if sync:
        disk.sync(descriptor)
    disk.close(descriptor)


def contents(fs: SimFileSystem, name: str) -> bytes | None:
    return None if fs.find(name) is None else fs.path(name).read_bytes()


def test_what_was_synced_with_its_name_outlives_a_power_failure() -> None:
    for choice in CHOICES:
        fs, disk = file_system()
        write(disk, fs.root / "a", b"whole", sync=True)
        disk.sync_folder(fs.root)
        fs.lose_power(choice)
        assert contents(fs, "a") == b"whole"


def test_a_name_that_was_not_synced_is_there_or_is_not() -> None:
    found = set()
    for choice in CHOICES:
        fs, disk = file_system()
        write(disk, fs.root / "a", b"whole", sync=True)
        fs.lose_power(choice)
        found.add(contents(fs, "a"))
    assert found == {None, b"whole"}


def test_a_file_that_was_not_synced_may_be_torn() -> None:
    found = set()
    for choice in CHOICES:
        fs, disk = file_system()
        write(disk, fs.root / "a", b"whole", sync=False)
        disk.sync_folder(fs.root)
        fs.lose_power(choice)
        found.add(contents(fs, "a"))
    assert found == {b"", b"w", b"wh", b"who", b"whol", b"whole"}


def test_a_rename_that_was_not_synced_leaves_one_name_or_both_or_none() -> None:
    found = set()
    for choice in range(200):
        fs, disk = file_system()
        write(disk, fs.root / "old", b"whole", sync=True)
        disk.sync_folder(fs.root)
        disk.rename(fs.root / "old", fs.root / "new")
        fs.lose_power(choice)
        found.add((contents(fs, "old") is not None, contents(fs, "new") is not None))
    assert found == {(True, True), (True, False), (False, True), (False, False)}


def test_a_folder_that_was_not_synced_takes_what_was_synced_in_it_along() -> None:
    found = set()
    for choice in CHOICES:
        fs, disk = file_system()
        disk.make_folder(fs.root / "folder")
        write(disk, fs.root / "folder" / "a", b"whole", sync=True)
        disk.sync_folder(fs.root / "folder")
        fs.lose_power(choice)
        found.add(contents(fs, "folder/a"))
    assert found == {None, b"whole"}


def test_a_folder_that_gets_another_name_keeps_what_is_in_it() -> None:
    fs, disk = file_system()
    disk.make_folder(fs.root / "folder")
    write(disk, fs.root / "folder" / "a", b"whole", sync=True)
    disk.rename(fs.root / "folder", fs.root / "other")
    assert (contents(fs, "folder/a"), contents(fs, "other/a")) == (None, b"whole")


def test_a_name_that_is_taken_is_refused() -> None:
    fs, disk = file_system()
    write(disk, fs.root / "a", b"whole", sync=True)
    with pytest.raises(FileExistsError):
        disk.create(fs.root / "a")
    with pytest.raises(FileExistsError):
        disk.link(fs.root / "a", fs.root / "a")


def test_a_write_that_is_refused_leaves_a_part() -> None:
    def full(what: str, path: str) -> None:
        if what == "write":
            raise OSError("full")

    fs = SimFileSystem(full, lambda path, data: None)
    with pytest.raises(OSError, match="full"):
        write(SimDisk(), fs.root / "a", b"whole", sync=True)
    assert contents(fs, "a") == b"wh"


def test_a_flipped_bit_changes_one_file_and_names_it() -> None:
    fs, disk = file_system()
    write(disk, fs.root / "a", b"whole", sync=True)
    assert fs.flip_a_bit(7) == "a"
    damaged = fs.path("a").read_bytes()
    assert sum((one ^ other).bit_count() for one, other in zip(damaged, b"whole", strict=True)) == 1
