"""A stored snapshot that was changed in any way is refused, naming the file, before RocksDB sees it."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from fnmatch import fnmatch
from hashlib import sha256
from pathlib import Path

import pytest

from tests.checkpoints.damages import DAMAGES, Damage, cut_tail
from tests.state.stored import Subtask
from tests.stored_job import stored_files
from twopc.errors import CheckpointCorrupted, Unavailable
from twopc.protocol.envelope import encode_fact
from twopc.protocol.facts import StateHandle
from twopc.protocol.layout import manifest_of
from twopc.protocol.manifest import Manifest, StoredFile

ROLES = ["*.sst", "MANIFEST-*", "CURRENT", "OPTIONS-*", "rocksdict-config.json", "manifest.json"]


def refused(subtask: Subtask, handle: StateHandle, into: Path) -> str:
    with pytest.raises(CheckpointCorrupted) as caught:
        subtask.storage.fetch(handle, into)
    assert not into.exists(), "what was refused must not be left where it could be opened"
    return str(caught.value)


def matching(subtask: Subtask, handle: StateHandle, role: str) -> list[Path]:
    """The stored files of a snapshot with such names."""
    if role == "manifest.json":
        return [subtask.root / manifest_of(handle.path)]
    return [path for name, path in sorted(stored_files(subtask.root, handle.path).items()) if fnmatch(name, role)]


@pytest.mark.simulation
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("role", ROLES)
def test_damage_to_any_file_is_refused_by_name(subtask: Subtask, tmp_path: Path, role: str, damage: Damage) -> None:
    handle = subtask.checkpoint(1)
    for path in matching(subtask, handle, role):
        kept = path.read_bytes()
        damage(path)
        assert str(path.relative_to(subtask.root)) in refused(subtask, handle, tmp_path / "fetched")
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        path.unlink(missing_ok=True)
        path.write_bytes(kept)
    subtask.storage.fetch(handle, tmp_path / "fetched")


def test_every_file_of_a_snapshot_has_a_role_that_these_tests_damage(subtask: Subtask) -> None:
    names = stored_files(subtask.root, subtask.checkpoint(1).path)
    damaged = {name for role in ROLES for name in names if fnmatch(name, role)}
    assert {name for name in names if not name.endswith(".log")} == damaged


def test_a_file_that_lost_its_tail_is_refused_with_both_sizes(subtask: Subtask, tmp_path: Path) -> None:
    handle = subtask.checkpoint(1)
    (path,) = matching(subtask, handle, "MANIFEST-*")
    size = path.stat().st_size
    cut_tail(path)
    assert f"it has {size - 1} bytes and should have {size}" in refused(subtask, handle, tmp_path / "fetched")


def test_two_files_that_changed_places_are_refused_by_name(subtask: Subtask, tmp_path: Path) -> None:
    handle = subtask.checkpoint(1)
    one, other, *_ = matching(subtask, handle, "*.sst")
    kept = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(kept)
    assert str(one) in refused(subtask, handle, tmp_path / "fetched")


def test_a_file_of_another_checkpoint_is_refused_by_name(subtask: Subtask, tmp_path: Path) -> None:
    older = subtask.checkpoint(1)
    newer = subtask.checkpoint(2)
    (path,), (other,) = (matching(subtask, handle, "MANIFEST-*") for handle in (newer, older))
    path.write_bytes(other.read_bytes())
    assert str(path) in refused(subtask, newer, tmp_path / "fetched")


def test_the_manifest_of_another_checkpoint_is_refused(subtask: Subtask, tmp_path: Path) -> None:
    older, newer = subtask.checkpoint(1), subtask.checkpoint(2)
    path = subtask.root / manifest_of(newer.path)
    path.write_bytes((subtask.root / manifest_of(older.path)).read_bytes())
    assert str(path) in refused(subtask, newer, tmp_path / "fetched")


@pytest.mark.parametrize("name", ["chk-1", "files"])
def test_a_folder_that_is_a_link_is_refused(subtask: Subtask, tmp_path: Path, name: str) -> None:
    handle = subtask.checkpoint(1)
    (subtask.root / name).rename(tmp_path / "elsewhere")
    (subtask.root / name).symlink_to(tmp_path / "elsewhere")
    assert f"{name}/" in refused(subtask, handle, tmp_path / "fetched")


def test_a_snapshot_that_is_not_there_is_refused_by_name(subtask: Subtask, tmp_path: Path) -> None:
    handle = StateHandle("chk-9/subtask-0", "0" * 64, 0, 0)
    assert str(subtask.root / "chk-9/subtask-0") in refused(subtask, handle, tmp_path / "fetched")


@pytest.mark.parametrize("path", ["../outside", "/etc", "chk-1/../../outside", "chk-1/subtask-0/../subtask-0", ""])
def test_a_handle_that_leads_elsewhere_is_refused(subtask: Subtask, tmp_path: Path, path: str) -> None:
    handle = subtask.checkpoint(1)
    assert repr(path) in refused(subtask, replace(handle, path=path), tmp_path / "fetched")


@pytest.mark.parametrize(
    "name",
    [
        "../outside",
        "/etc/passwd",
        "files/../outside",
        "files/7-0-3f-../x",
        "..",
        "",
        "chk-1/subtask-0.json",
        "files/7-0-3f-a\x00b",
    ],
)
def test_a_manifest_with_a_name_that_leads_elsewhere_is_refused(subtask: Subtask, tmp_path: Path, name: str) -> None:
    handle = subtask.checkpoint(1)
    (subtask.root / "outside").write_bytes(b"secret")
    path = subtask.root / manifest_of(handle.path)
    listed = [[name, 6, sha256(b"secret").hexdigest()]]
    data = encode_fact("state-manifest", {"files": listed, "key_count": 1})
    path.write_bytes(data)
    message = refused(subtask, replace(handle, manifest_sha256=sha256(data).hexdigest()), tmp_path / "fetched")
    assert str(path) in message
    assert repr(name) in message


def test_a_manifest_that_speaks_of_a_huge_file_is_refused_without_reading_that_much(
    subtask: Subtask, tmp_path: Path
) -> None:
    handle = subtask.checkpoint(1)
    path = subtask.root / manifest_of(handle.path)
    listed = Manifest.decode(path.read_bytes(), "here")
    huge = [replace(file, size_bytes=1 << 62) for file in listed.files]
    data = Manifest.of(huge, 1 << 62).encode()
    path.write_bytes(data)
    tracemalloc.start()
    message = refused(subtask, replace(handle, manifest_sha256=sha256(data).hexdigest()), tmp_path / "fetched")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert f"should have {1 << 62}" in message
    assert peak < 10_000_000


def test_a_file_with_another_name_elsewhere_is_fine_as_long_as_its_contents_are(
    subtask: Subtask, tmp_path: Path
) -> None:
    handle = subtask.checkpoint(1)
    (path,) = matching(subtask, handle, "CURRENT")
    (tmp_path / "elsewhere").hardlink_to(path)
    subtask.storage.fetch(handle, tmp_path / "fetched")
    assert not (tmp_path / "fetched" / "CURRENT").samefile(path)
    path.write_bytes(b"MANIFEST-9999999\n")
    assert str(path) in refused(subtask, handle, tmp_path / "again")


@pytest.mark.parametrize(
    "body", [{}, {"files": 1, "key_count": 1}, {"files": [["a"]], "key_count": 1}, {"files": [], "key_count": "x"}]
)
def test_a_manifest_of_another_shape_is_refused(body: dict[str, object]) -> None:
    with pytest.raises(CheckpointCorrupted, match=r"here\.json"):
        Manifest.decode(encode_fact("state-manifest", body), "here.json")


def test_a_manifest_that_lists_a_file_twice_is_refused() -> None:
    with pytest.raises(CheckpointCorrupted, match="twice"):
        Manifest.of([StoredFile("files/1-0-3f-a", 1, "x"), StoredFile("files/2-0-4e-a", 2, "y")], 0)


def test_a_folder_that_exists_is_not_overwritten_by_a_fetch(subtask: Subtask, tmp_path: Path) -> None:
    handle = subtask.checkpoint(1)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_bytes(b"kept")
    with pytest.raises(Unavailable, match="mine"):
        subtask.storage.fetch(handle, tmp_path / "mine")
    assert (tmp_path / "mine" / "file").read_bytes() == b"kept"
