"""A checkpoint store on HDFS: what becomes of answers that are lost, and of what they were about."""

from __future__ import annotations

import re
import sys
import threading

import pytest

from twopc.errors import ConfigurationError
from twopc.storage.open import open_store

pytest.importorskip("hdfs_native", reason="HDFS needs the extra twopc-streams[hdfs]")

from tests.storage.memory_hdfs import MemoryHdfs
from twopc.storage.hdfs import Hdfs
from twopc.storage.hdfs_store import HdfsStore

ENTRY = "ledger/000000000001.json"


@pytest.fixture
def hdfs() -> MemoryHdfs:
    return MemoryHdfs()


@pytest.fixture
def store(hdfs: MemoryHdfs) -> HdfsStore:
    return HdfsStore(hdfs, "/checkpoints").within("job")


def use(store: HdfsStore) -> None:
    store.create_once("ledger/2.json", b"fact")
    store.names()
    store.get(ENTRY)


def hdfs_threads() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == "twopc-hdfs"]


def left_half_done(hdfs: MemoryHdfs) -> list[str]:
    return [path for path in hdfs.files if "/." in path]


def test_a_creator_whose_rename_was_done_and_its_answer_lost_has_won(store: HdfsStore, hdfs: MemoryHdfs) -> None:
    hdfs.lost = ["rename"]
    store.create_once(ENTRY, b"mine")
    assert hdfs.requests.count("rename") == 2
    assert (store.get(ENTRY), left_half_done(hdfs)) == (b"mine", [])


def test_a_creator_who_has_lost_is_told_though_the_answer_was_lost(store: HdfsStore, hdfs: MemoryHdfs) -> None:
    store.create_once(ENTRY, b"another's")
    hdfs.lost = ["rename"]
    with pytest.raises(FileExistsError):
        store.create_once(ENTRY, b"mine")
    assert (store.get(ENTRY), left_half_done(hdfs)) == (b"another's", [])


def test_a_create_that_met_its_own_first_try_is_not_taken_for_a_lost_race(store: HdfsStore, hdfs: MemoryHdfs) -> None:
    hdfs.refusing = FileExistsError("already created by the same holder\n\tat org.apache.hadoop")
    hdfs.folders |= {"/checkpoints", "/checkpoints/job", "/checkpoints/job/ledger"}
    with pytest.raises(OSError, match="same holder") as told:
        hdfs.write("/checkpoints/job/ledger/.tmp-1", [b"mine"])
    assert not isinstance(told.value, FileExistsError)


def test_a_name_that_was_deleted_before_it_could_be_compared_is_to_be_tried_again(
    store: HdfsStore, hdfs: MemoryHdfs, monkeypatch: pytest.MonkeyPatch
) -> None:
    def taken(*_: object) -> None:
        raise FileExistsError

    monkeypatch.setattr(MemoryHdfs, "rename", taken)
    with pytest.raises(OSError, match="none is there") as told:
        store.create_once(ENTRY, b"mine")
    assert not isinstance(told.value, FileExistsError)


@pytest.mark.parametrize("request_", ["rename", "create", "list", "read"])
def test_a_name_node_that_stands_still_is_an_error_and_asked_over_a_new_connection_then(
    store: HdfsStore, hdfs: MemoryHdfs, monkeypatch: pytest.MonkeyPatch, request_: str
) -> None:
    store.create_once(ENTRY, b"fact")
    monkeypatch.setattr("twopc.storage.hdfs._SILENCE_S", 0.5)
    hdfs.silent = {request_}
    with pytest.raises(OSError, match=r"HDFS has not answered in 0\.5 s"):
        use(store)
    hdfs.silent = set()
    hdfs.answering.set()
    assert store.get(ENTRY) == b"fact"
    assert hdfs.clients == 2


def test_a_rename_that_is_still_on_its_way_after_it_was_given_up_finds_nothing_to_rename(
    store: HdfsStore, hdfs: MemoryHdfs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("twopc.storage.hdfs._SILENCE_S", 0.5)
    hdfs.silent = {"rename"}
    with pytest.raises(OSError, match="not answered"):
        store.create_once(ENTRY, b"mine")
    hdfs.answering.set()
    for thread in hdfs_threads():
        thread.join(10)
    assert hdfs.requests[-2:] == ["rename", "delete"]
    assert hdfs.files == {}


def test_what_a_killed_creator_left_is_swept_from_a_ledger_and_goes_with_a_checkpoint(
    store: HdfsStore, hdfs: MemoryHdfs
) -> None:
    store.create_once(ENTRY, b"fact")
    store.create_once("chk-1/metadata.json", b"fact")
    for folder in ("ledger", "chk-1"):
        hdfs.files[f"/checkpoints/job/{folder}/.tmp-0"] = b"ha"
    assert store.names() == ["chk-1/metadata.json", ENTRY]
    store.sweep("ledger/")
    assert left_half_done(hdfs) == ["/checkpoints/job/chk-1/.tmp-0"]
    store.delete(["chk-1/metadata.json"])
    assert (left_half_done(hdfs), store.parts()) == ([], ["ledger"])


@pytest.mark.parametrize("size", [0, 1, 32 << 20, (32 << 20) + 1])
def test_all_bytes_are_on_disks_before_a_file_is_closed(store: HdfsStore, hdfs: MemoryHdfs, size: int) -> None:
    (stored,) = store.put([("files/a", (bytes(each) for each in (size // 2, size - size // 2)))])
    assert stored.size_bytes == len(store.get("files/a")) == size
    assert hdfs.requests.count("hsync") == -(-size // (32 << 20))


def test_a_folder_that_may_not_be_written_to_is_refused_before_the_first_record(
    store: HdfsStore, hdfs: MemoryHdfs
) -> None:
    hdfs.refusing = RuntimeError(
        'RPCError("org.apache.hadoop.security.AccessControlException", "Permission denied: user=me\\n\\tat org.x")'
    )
    with pytest.raises(ConfigurationError, match=r"hdfs://namenode:8020/checkpoints/job.*Permission denied: user=me;"):
        store.prepare()


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (OSError("Connection refused (os error 111)"), "no good answer: Connection refused"),
        (
            RuntimeError('RPCError("org.apache.hadoop.hdfs.server.namenode.SafeModeException", "No.\\n\\tat org.x")'),
            r"no good answer: SafeModeException: No\.$",
        ),
        (RuntimeError('DataTransferError("All DataNodes failed: []")'), "no good answer: .*All DataNodes failed"),
    ],
)
def test_a_file_system_that_is_away_is_waited_for_and_said_in_one_line(
    store: HdfsStore, hdfs: MemoryHdfs, raised: Exception, told: str
) -> None:
    hdfs.refusing = raised
    store.prepare()
    with pytest.raises(OSError, match="HDFS has given") as found:
        store.get(ENTRY)
    assert not isinstance(found.value, PermissionError)
    assert re.search(told, str(found.value.strerror))
    assert "\n" not in str(found.value.strerror)


def test_preparing_leaves_nothing_behind(store: HdfsStore, hdfs: MemoryHdfs) -> None:
    store.prepare()
    assert (hdfs.files, store.parts()) == ({}, [])


def test_a_name_service_that_no_configuration_knows_is_said_with_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HADOOP_CONF_DIR", "HADOOP_HOME"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConfigurationError, match=r"hdfs://production can't be opened.*HADOOP_CONF_DIR"):
        open_store("hdfs://production/checkpoints").parts()


def test_where_the_client_is_missing_what_to_install_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "twopc.storage.hdfs")
    monkeypatch.delitem(sys.modules, "twopc.storage.hdfs_store")
    monkeypatch.setitem(sys.modules, "hdfs_native", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'twopc-streams\[hdfs\]'"):
        open_store("hdfs://namenode:8020/checkpoints")


class _EndedConnection:
    """Fails as the client's connection does that has ended: for the next call, too."""

    def delete(self, *_: object) -> None:
        raise OSError("RPC listener disconnected")


class _Connection:
    def __init__(self) -> None:
        self.deleted: list[str] = []

    def delete(self, path: str, _recursive: bool) -> None:
        self.deleted.append(path)


def test_a_connection_that_has_ended_is_not_used_for_the_second_try(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = _Connection()
    clients = iter([_EndedConnection(), connection])
    monkeypatch.setattr(Hdfs, "_new_client", lambda _: next(clients))
    Hdfs("name-node:8020").delete("/job/a")
    assert connection.deleted == ["/job/a"]
