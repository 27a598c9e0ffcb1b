"""What every checkpoint store promises, in a folder and in memory."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from coordinator.ledger import Ledger
from tests.storage.faulty_store import Failure, FaultyStore, Strike
from twopc.errors import Fenced
from twopc.protocol.attempt_facts import AttemptStarted
from twopc.protocol.attempts import CheckpointSettings
from twopc.protocol.ids import NO_CHECKPOINT, AttemptId
from twopc.storage.local import LocalStore
from twopc.storage.memory import MemoryStore
from twopc.storage.store import CheckpointStore, Stored

Open = Callable[[], CheckpointStore]
"""Opens the same store again, as another process would."""

ENTRY = "ledger/000000000001.json"
CREATORS = 8


@pytest.fixture(params=["local", "memory"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    data: dict[str, bytes] = {}
    kinds: dict[str, Open] = {
        "local": lambda: LocalStore(tmp_path / "store").within("job"),
        "memory": lambda: MemoryStore(data).within("job"),
    }
    return kinds[request.param]


@pytest.fixture
def store(opened: Open) -> CheckpointStore:
    store = opened()
    store.establish()
    return store


@pytest.fixture
def other(store: CheckpointStore, opened: Open) -> CheckpointStore:
    """The same, of another process."""
    return opened()


def test_what_was_created_is_there_for_everybody(store: CheckpointStore, other: CheckpointStore) -> None:
    store.create_once(ENTRY, b"fact")
    assert other.get(ENTRY) == b"fact"


def test_a_name_that_is_taken_is_refused_and_keeps_its_bytes(store: CheckpointStore, other: CheckpointStore) -> None:
    store.create_once("chk-7/metadata.json", b"first")
    with pytest.raises(FileExistsError):
        other.create_once("chk-7/metadata.json", b"second")
    assert store.get("chk-7/metadata.json") == b"first"


def test_a_creator_whose_answer_was_lost_finds_its_own_bytes_and_has_won(
    store: CheckpointStore, other: CheckpointStore
) -> None:
    mine = other.creator().encode()
    other.create_once(ENTRY, mine)
    other.create_once(ENTRY, mine)
    with pytest.raises(FileExistsError):
        store.create_once(ENTRY, store.creator().encode())


def test_no_two_creators_have_the_same_token(store: CheckpointStore, other: CheckpointStore) -> None:
    assert len({store.creator(), store.creator(), other.creator()}) == 3


@pytest.mark.parametrize("name", [ENTRY, "chk-7/subtask-0.json"])
def test_of_many_creators_of_a_name_exactly_one_succeeds(store: CheckpointStore, opened: Open, name: str) -> None:
    stores = [opened() for _ in range(CREATORS)]
    together, won = threading.Barrier(CREATORS), list[str]()

    def create(each: CheckpointStore) -> None:
        token = each.creator()
        together.wait(60)
        try:
            each.create_once(name, token.encode())
        except FileExistsError:
            return
        won.append(token)

    threads = [threading.Thread(target=create, args=[each]) for each in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [store.get(name).decode()] == won


def create_each(root: Path, names: list[str], start: Any, won: Any) -> None:
    store = LocalStore(root)
    token = store.creator()
    start.wait(120)
    for name in names:
        with suppress(FileExistsError):
            store.create_once(name, token.encode())
            won.put((name, token))


def test_of_creators_in_several_processes_exactly_one_has_each_name(tmp_path: Path) -> None:
    store, names = LocalStore(tmp_path / "store"), [f"chk-{number}/metadata.json" for number in range(1, 41)]
    store.establish()
    context = multiprocessing.get_context("spawn")
    start, won = context.Barrier(4), context.Queue()
    creators = [context.Process(target=create_each, args=(store.root, names, start, won)) for _ in range(4)]
    for creator in creators:
        creator.start()
    winners = [won.get(timeout=120) for _ in names]
    for creator in creators:
        creator.join(120)
    assert won.empty()
    assert sorted(winners) == sorted((name, store.get(name).decode()) for name in names)


@pytest.mark.parametrize("failure", Failure, ids=lambda failure: str(failure.value))
def test_a_ledger_goes_on_after_a_failed_create_and_nobody_is_fenced_for_a_lost_answer(
    store: CheckpointStore, failure: Failure
) -> None:
    strike = Strike(failure, 2)
    ledger = Ledger("job", FaultyStore(store, strike))
    started = [
        AttemptStarted(AttemptId(each), 1, CheckpointSettings(1_000, 60_000), NO_CHECKPOINT, 0) for each in (1, 2)
    ]
    ledger.store(started[0])
    other = Ledger("job", store)
    with pytest.raises(OSError, match="simulated"):
        ledger.store(started[1])
    ledger.store(started[1])
    assert (ledger.state.current, Ledger("job", store).state.current) == (2, 2)
    with pytest.raises(Fenced, match="attempt 2"):
        other.store(started[1])


def test_bytes_files_and_streams_are_put_and_told_by_their_digests(store: CheckpointStore, tmp_path: Path) -> None:
    local = tmp_path / "000012.sst"
    local.write_bytes(b"sorted")
    stored = store.put([("files/a", b"bytes"), ("files/b", local), ("files/c", iter([b"in ", b"parts"]))])
    assert [store.get(each.name) for each in stored] == [b"bytes", b"sorted", b"in parts"]
    assert stored[1] == Stored("files/b", 6, sha256(b"sorted").hexdigest())
    assert stored[2] == Stored("files/c", 8, sha256(b"in parts").hexdigest())


def test_what_was_put_is_whole_though_the_local_file_is_deleted_then(store: CheckpointStore, tmp_path: Path) -> None:
    local = tmp_path / "000012.sst"
    local.write_bytes(b"sorted")
    store.put([("files/b", local)])
    local.unlink()
    assert store.get("files/b") == b"sorted"


def test_putting_again_replaces_what_an_interrupted_put_left(store: CheckpointStore) -> None:
    store.put([("files/a", b"ha")])
    store.put([("files/a", b"half and half")])
    assert store.get("files/a") == b"half and half"


def test_files_are_stored_one_by_one_as_they_come(store: CheckpointStore, other: CheckpointStore) -> None:
    seen: list[bytes] = []

    def files() -> Iterator[tuple[str, bytes]]:
        yield "files/a", b"first"
        seen.append(other.get("files/a"))

    store.put(files())
    assert seen == [b"first"]


def test_what_is_stored_can_be_read_as_a_stream_and_brought_to_a_file(store: CheckpointStore, tmp_path: Path) -> None:
    data = bytes(range(256)) * 10_000
    store.put([("files/a", data)])
    with store.open("files/a") as reading:
        assert reading.size_bytes == len(data)
        assert b"".join(reading.chunks) == data
    store.bring("files/a", tmp_path / "brought")
    assert (tmp_path / "brought").read_bytes() == data


@pytest.mark.parametrize("read", ["get", "open", "bring"])
def test_reading_what_is_not_there_says_so(store: CheckpointStore, tmp_path: Path, read: str) -> None:
    reads: dict[str, Callable[[], object]] = {
        "get": lambda: store.get("files/a"),
        "open": lambda: store.open("files/a").__enter__(),
        "bring": lambda: store.bring("files/a", tmp_path / "brought"),
    }
    with pytest.raises(FileNotFoundError):
        reads[read]()


def test_names_are_listed_by_any_prefix_in_their_order(store: CheckpointStore) -> None:
    for name in ("chk-10/metadata.json", "chk-1/subtask-0.json", "chk-1/metadata.json", ENTRY):
        store.create_once(name, b"fact")
    assert store.names("chk-1/") == ["chk-1/metadata.json", "chk-1/subtask-0.json"]
    assert store.names("chk-1") == ["chk-1/metadata.json", "chk-1/subtask-0.json", "chk-10/metadata.json"]
    assert store.names("chk-1/s") == ["chk-1/subtask-0.json"]
    assert store.names("nothing/") == []
    assert store.names() == ["chk-1/metadata.json", "chk-1/subtask-0.json", "chk-10/metadata.json", ENTRY]
    assert store.parts() == ["chk-1", "chk-10", "ledger"]


def test_a_listing_beside_a_writer_has_only_whole_names_and_all_that_were_there_before(
    store: CheckpointStore, other: CheckpointStore
) -> None:
    names = [f"ledger/{number:012d}.json" for number in range(1, 200)]
    done = threading.Event()

    def write() -> None:
        for name in names:
            store.create_once(name, name.encode())
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    listed = 0
    while not done.is_set():
        now = other.names("ledger/")
        assert len(now) >= listed
        assert [other.get(name) for name in now] == [name.encode() for name in now]
        listed = len(now)
    writer.join(60)
    assert other.names("ledger/") == names


def test_deleting_takes_what_is_given_in_that_order_and_forgives_what_is_gone(store: CheckpointStore) -> None:
    for name in ("chk-1/subtask-0.json", "chk-1/metadata.json", "chk-2/metadata.json"):
        store.create_once(name, b"fact")
    there: list[list[str]] = []

    def names() -> Iterator[str]:
        yield "chk-1/metadata.json"
        there.append(store.names())
        yield "chk-1/gone"
        yield "chk-1/subtask-0.json"

    store.delete(names())
    assert there == [["chk-1/subtask-0.json", "chk-2/metadata.json"]]
    assert store.names() == ["chk-2/metadata.json"]
    assert "chk-1" not in store.parts()


def test_a_deleted_name_may_be_created_again(store: CheckpointStore) -> None:
    store.create_once(ENTRY, b"fact")
    store.delete([ENTRY])
    store.create_once(ENTRY, b"another")
    assert store.get(ENTRY) == b"another"


def test_another_store_puts_what_one_has_under_the_same_name_and_neither_needs_the_other_then(
    store: CheckpointStore, tmp_path: Path
) -> None:
    store.put([("files/a", b"fact"), ("files/b", b"other")])
    target = LocalStore(tmp_path / "target")
    target.establish()
    stored = target.put([("files/a", store.content("files/a")), ("files/b", store.stream("files/b"))])
    assert [each.sha256 for each in stored] == [sha256(b"fact").hexdigest(), sha256(b"other").hexdigest()]
    store.delete(["files/a", "files/b"])
    assert (target.get("files/a"), target.get("files/b")) == (b"fact", b"other")


def test_what_is_stored_within_a_part_stands_under_its_name(store: CheckpointStore) -> None:
    deep = store.within("deep")
    deep.establish()
    deep.create_once("a/b", b"fact")
    assert store.get("deep/a/b") == b"fact"
    assert store.within("deep").names() == ["a/b"]


def test_sweeping_takes_nothing_that_is_whole(store: CheckpointStore) -> None:
    store.create_once(ENTRY, b"fact")
    store.create_once("chk-1/metadata.json", b"fact")
    for prefix in ("ledger/", "chk-1/", "chk-2/"):
        store.sweep(prefix)
    assert store.names() == ["chk-1/metadata.json", ENTRY]


def test_a_place_names_the_job_for_people(store: CheckpointStore) -> None:
    assert store.place("chk-1").endswith("job/chk-1")
    assert store.place().endswith("job")
