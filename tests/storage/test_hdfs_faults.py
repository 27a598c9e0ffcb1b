"""A checkpoint store on a real HDFS, behind a network that loses answers, and servers that stand still or die."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from twopc.faults.tcp_proxy import Connection, Direction, Proxy
from twopc.storage.open import open_store
from twopc.storage.store import CheckpointStore
from twopc.testing.local_hdfs import LocalHdfs

pytestmark = [pytest.mark.broker, pytest.mark.proof, pytest.mark.xdist_group("hdfs")]

ENTRY = "ledger/000000000001.json"


class NameNodeProxy(Proxy):
    """Ends the connection in place of the answer to the next request of a kind, once the name node has done it."""

    def __init__(self, target: int) -> None:
        super().__init__(target)
        self.requests = 0
        self._method = b""
        self._struck: set[Connection] = set()

    def lose_answer(self, method: str) -> None:
        self._method = method.encode()

    def _passed(self, connection: Connection, direction: Direction, piece: bytes) -> bytes | None:
        if direction is Direction.TO_CLIENT:
            return None if connection in self._struck else piece
        if self._method and self._method in piece:
            self._struck.add(connection)
            self._method = b""
        return piece


@pytest.fixture
def proxy(hdfs_server: LocalHdfs) -> Iterator[NameNodeProxy]:
    with NameNodeProxy(hdfs_server.port) as proxy:
        yield proxy


@pytest.fixture
def store(hdfs_server: LocalHdfs, proxy: NameNodeProxy) -> CheckpointStore:
    store = open_store(hdfs_server.url(f"faults/{uuid.uuid4()}", proxy.port)).within("job")
    store.prepare()
    return store


@pytest.mark.parametrize("method", ["create", "addBlock", "complete", "rename2", "delete"])
def test_a_creator_whose_answer_was_lost_at_any_step_has_won(
    store: CheckpointStore, proxy: NameNodeProxy, method: str
) -> None:
    proxy.lose_answer(method)
    store.create_once(ENTRY, b"mine")
    assert store.get(ENTRY) == b"mine"
    with pytest.raises(FileExistsError):
        store.create_once(ENTRY, b"another's")


def test_a_creator_who_has_lost_is_told_though_the_answer_was_lost(
    store: CheckpointStore, proxy: NameNodeProxy
) -> None:
    store.create_once(ENTRY, b"another's")
    proxy.lose_answer("rename2")
    with pytest.raises(FileExistsError):
        store.create_once(ENTRY, b"mine")
    assert store.get(ENTRY) == b"another's"


def test_a_name_node_that_stands_still_is_an_error_and_not_for_ever(
    store: CheckpointStore, proxy: NameNodeProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("twopc.storage.hdfs._SILENCE_S", 2.0)
    store.create_once(ENTRY, b"fact")
    proxy.cut(Direction.TO_CLIENT)
    with pytest.raises(OSError, match="has not answered"):
        store.get(ENTRY)
    proxy.heal()
    assert store.get(ENTRY) == b"fact"


@pytest.mark.proof
def test_what_was_stored_outlives_both_servers_and_while_they_are_away_they_are_named(
    store: CheckpointStore, hdfs_server: LocalHdfs
) -> None:
    store.create_once(ENTRY, b"fact")
    hdfs_server.data_node.kill()
    with pytest.raises(OSError, match="HDFS has given no good answer"):
        store.get(ENTRY)
    with pytest.raises(OSError, match="HDFS has given no good answer"):
        store.put([("files/a", b"bytes")])
    hdfs_server.name_node.kill()
    with pytest.raises(OSError, match="HDFS has given no good answer"):
        store.names()
    hdfs_server.start()
    assert store.get(ENTRY) == b"fact"
    with pytest.raises(FileExistsError):
        store.create_once(ENTRY, b"another's")
