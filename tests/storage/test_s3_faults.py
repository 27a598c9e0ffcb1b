"""A checkpoint store on S3 behind a network that loses answers, and a server that is busy, silent, or gone."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from coordinator.ledger import Ledger
from tests.object_server.faulty_proxy import Answer, ObjectProxy
from tests.object_server.server import ObjectServer
from twopc.errors import Fenced
from twopc.faults.tcp_proxy import Direction
from twopc.protocol.attempt_facts import AttemptStarted
from twopc.protocol.attempts import CheckpointSettings
from twopc.protocol.ids import NO_CHECKPOINT, AttemptId
from twopc.storage.open import open_store
from twopc.storage.store import CheckpointStore

pytestmark = pytest.mark.broker

ENTRY = "ledger/000000000001.json"


@pytest.fixture
def proxy(object_server: ObjectServer) -> Iterator[ObjectProxy]:
    with ObjectProxy(object_server.port) as proxy:
        yield proxy


@pytest.fixture
def store(
    proxy: ObjectProxy, object_server: ObjectServer, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> CheckpointStore:
    for name, value in object_server.environment(proxy.port).items():
        monkeypatch.setenv(name, value)
    # A busy machine lets the server take a second, several times in a row.
    monkeypatch.setattr("twopc.storage.bucket._SILENCE", timedelta(seconds=4))
    return open_store(object_server.url(f"faults/{proxy.port}-{abs(hash(request.node.name))}")).within("job")


@pytest.mark.parametrize("answer", Answer)
def test_a_creator_whose_answer_was_lost_has_won(store: CheckpointStore, proxy: ObjectProxy, answer: Answer) -> None:
    proxy.strike("PUT", answer)
    store.create_once(ENTRY, b"mine")
    assert proxy.requests == ["PUT", "PUT", "GET"]
    with pytest.raises(FileExistsError):
        store.create_once(ENTRY, b"another's")


@pytest.mark.parametrize("answer", Answer)
def test_a_creator_who_has_lost_is_told_though_the_answer_was_lost(
    store: CheckpointStore, proxy: ObjectProxy, answer: Answer
) -> None:
    store.create_once(ENTRY, b"another's")
    proxy.strike("PUT", answer)
    with pytest.raises(FileExistsError):
        store.create_once(ENTRY, b"mine")


def test_a_server_that_is_busy_for_a_moment_is_asked_again(store: CheckpointStore, proxy: ObjectProxy) -> None:
    store.put([("files/a", b"bytes")])
    for method in ("GET", "PUT", "DELETE"):
        proxy.strike(method, Answer.SLOW_DOWN, times=2)
        store.put([("files/b", b"bytes")])
        assert store.names() == ["files/a", "files/b"]
        assert store.get("files/a") == b"bytes"
        store.delete(["files/b"])


def test_a_server_that_stays_busy_is_named(store: CheckpointStore, proxy: ObjectProxy) -> None:
    proxy.strike("PUT", Answer.SLOW_DOWN, times=100)
    with pytest.raises(OSError, match="503"):
        store.put([("files/a", b"bytes")])


@pytest.mark.proof
def test_a_server_that_stands_still_is_an_error_and_not_for_ever(store: CheckpointStore, proxy: ObjectProxy) -> None:
    store.create_once(ENTRY, b"fact")
    proxy.cut(Direction.TO_CLIENT)
    with pytest.raises(OSError, match="no good answer"):
        store.create_once("ledger/000000000002.json", b"fact")
    with pytest.raises(OSError, match="no good answer"):
        store.get(ENTRY)
    proxy.heal()
    assert store.get(ENTRY) == b"fact"


@pytest.mark.parametrize("answer", Answer)
def test_a_ledger_whose_every_answer_is_lost_once_fences_nobody_but_the_older_one(
    store: CheckpointStore, proxy: ObjectProxy, answer: Answer
) -> None:
    ledger, older = Ledger("job", store), Ledger("job", store)
    for attempt in (1, 2, 3):
        proxy.strike("PUT", answer)
        ledger.store(AttemptStarted(AttemptId(attempt), 1, CheckpointSettings(1_000, 60_000), NO_CHECKPOINT, 0))
    assert Ledger("job", store).state.current == 3
    with pytest.raises(Fenced):
        older.store(AttemptStarted(AttemptId(1), 1, CheckpointSettings(1_000, 60_000), NO_CHECKPOINT, 0))


def test_what_was_stored_outlives_the_server(store: CheckpointStore, object_server: ObjectServer) -> None:
    store.create_once(ENTRY, b"fact")
    object_server.kill()
    with pytest.raises(OSError, match="no good answer"):
        store.get(ENTRY)
    object_server.start()
    assert store.get(ENTRY) == b"fact"
    with pytest.raises(FileExistsError):
        store.create_once(ENTRY, b"another's")
