"""What every checkpoint store promises: in a folder, in memory, in a bucket, on real servers: S3, Azure, HDFS."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from coordinator.ledger import Ledger
from tests.object_server.azurite import Azurite
from tests.object_server.google import GoogleStandIn
from tests.object_server.server import UNFINISHED, ObjectServer
from tests.storage.faulty_store import Failure, FaultyStore, Strike
from tests.storage.memory_bucket import MemoryBucket
from tests.storage.races import race
from twopc.errors import Fenced
from twopc.protocol.attempt_facts import AttemptStarted
from twopc.protocol.attempts import CheckpointSettings
from twopc.protocol.ids import NO_CHECKPOINT, AttemptId
from twopc.storage.local import LocalStore
from twopc.storage.memory import MemoryStore
from twopc.storage.object_store import ObjectStore
from twopc.storage.open import open_store
from twopc.storage.store import CheckpointStore, Content, StoredObject
from twopc.testing.local_hdfs import LocalHdfs

Open = Callable[[], CheckpointStore]
"""Opens the same store again, as another process would."""

ENTRY = "ledger/000000000001.json"
CREATORS = 8


ON_HDFS = [pytest.mark.broker, pytest.mark.proof, pytest.mark.xdist_group("hdfs")]


@pytest.fixture(
    params=[
        *("local", "memory", "bucket", "hdfs in memory"),
        pytest.param("as_google", marks=pytest.mark.proof),
        pytest.param("on_s3", marks=pytest.mark.broker),
        pytest.param("on_azure", marks=pytest.mark.broker),
        pytest.param("on_hdfs", marks=ON_HDFS),
    ]
)
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    data: dict[str, bytes] = {}
    bucket = MemoryBucket()
    kinds: dict[str, Open] = {
        "local": lambda: LocalStore(tmp_path / "store").within("job"),
        "memory": lambda: MemoryStore(data).within("job"),
        "bucket": lambda: ObjectStore(bucket, "checkpoints/").within("job"),
    }
    if request.param == "hdfs in memory":
        return hdfs_in_memory()
    return kinds[request.param] if request.param in kinds else request.getfixturevalue(request.param)


def hdfs_in_memory() -> Open:
    pytest.importorskip("hdfs_native", reason="HDFS needs the extra twopc-streams[hdfs]")
    from tests.storage.memory_hdfs import MemoryHdfs
    from twopc.storage.hdfs_store import HdfsStore

    hdfs = MemoryHdfs()
    return lambda: HdfsStore(hdfs, "/checkpoints").within("job")


def reached(server: ObjectServer | GoogleStandIn | Azurite, monkeypatch: pytest.MonkeyPatch) -> Open:
    """Have this process reach the server; what is opened is under a prefix of its own."""
    for name, value in server.environment().items():
        monkeypatch.setenv(name, value)
    url = server.url(f"prefix/{uuid.uuid4()}")
    return lambda: open_store(url).within("job")


@pytest.fixture
def on_s3(object_server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> Open:
    return reached(object_server, monkeypatch)


@pytest.fixture
def google() -> Iterator[GoogleStandIn]:
    with GoogleStandIn() as running:
        yield running


@pytest.fixture
def as_google(google: GoogleStandIn, monkeypatch: pytest.MonkeyPatch) -> Open:
    return reached(google, monkeypatch)


@pytest.fixture
def on_azure(azure_server: Azurite, monkeypatch: pytest.MonkeyPatch) -> Open:
    return reached(azure_server, monkeypatch)


@pytest.fixture
def on_hdfs(hdfs_server: LocalHdfs) -> Open:
    url = hdfs_server.url(f"prefix/{uuid.uuid4()}")
    return lambda: open_store(url).within("job")


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


def test_of_creators_in_several_processes_exactly_one_has_each_name(tmp_path: Path) -> None:
    race(str(tmp_path / "store"), 4, 40)


@pytest.mark.broker
def test_of_creators_in_twelve_processes_exactly_one_has_each_name_on_s3(on_s3: Open) -> None:
    race(on_s3().identity, 12, 100)


def test_of_creators_in_several_processes_exactly_one_has_each_name_where_google_decides(
    as_google: Open, google: GoogleStandIn
) -> None:
    race(as_google().identity, 4, 40)
    assert set(google.conditions) == {"0"}


@pytest.mark.broker
def test_of_creators_in_twelve_processes_exactly_one_has_each_name_on_azure(on_azure: Open) -> None:
    race(on_azure().identity, 12, 100)


@pytest.mark.broker
@pytest.mark.xdist_group("hdfs")
@pytest.mark.proof
def test_of_creators_in_twelve_processes_exactly_one_has_each_name_on_hdfs(on_hdfs: Open) -> None:
    race(on_hdfs().identity, 12, 5)


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
    assert stored[1] == StoredObject("files/b", 6, sha256(b"sorted").hexdigest())
    assert stored[2] == StoredObject("files/c", 8, sha256(b"in parts").hexdigest())


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


def test_no_more_files_are_taken_than_are_stored_at_once(store: CheckpointStore, other: CheckpointStore) -> None:
    ahead: list[int] = []

    def files() -> Iterator[tuple[str, bytes]]:
        for taken in range(12):
            ahead.append(taken - len(other.names("files/")))
            yield f"files/{taken}", b"bytes"

    stored = store.put(files())
    assert max(ahead) < store.at_once
    assert [each.name for each in stored] == [f"files/{number}" for number in range(12)]


def test_a_file_that_comes_after_one_that_failed_is_not_taken(store: CheckpointStore, tmp_path: Path) -> None:
    taken: list[int] = []

    def files() -> Iterator[tuple[str, Content]]:
        yield "files/gone", tmp_path / "gone"
        for number in range(20):
            taken.append(number)
            yield f"files/{number}", b"bytes"

    with pytest.raises(FileNotFoundError):
        store.put(files())
    assert len(taken) < store.at_once


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


def test_what_is_read_together_comes_in_the_order_in_which_it_was_asked_for(store: CheckpointStore) -> None:
    names = [f"files/{number}" for number in (3, 11, 0, 7, 5, 1, 9)]
    store.put((name, name.encode()) for name in names)
    assert store.get_all(iter(names)) == [name.encode() for name in names]
    assert store.get_all([]) == []
    with pytest.raises(FileNotFoundError):
        store.get_all([*names, "files/2"])


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
    names = [f"ledger/{number:012d}.json" for number in range(1, 10 if "hdfs:" in store.identity else 200)]
    done = threading.Event()

    def write() -> None:
        for name in names:
            store.create_once(name, name.encode())
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    listed = 0
    while not done.is_set():
        now = [name for name in other.names("ledger/") if not UNFINISHED.search(name)]
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


def test_what_is_deleted_in_any_order_is_gone_and_its_checkpoint_with_the_last_of_it(store: CheckpointStore) -> None:
    for name in ("chk-1/subtask-0.json", "chk-1/metadata.json", "chk-2/metadata.json"):
        store.create_once(name, b"fact")
    store.put((f"files/{number}", b"bytes") for number in range(9))
    store.delete_unordered(name for name in [*store.names("chk-1/"), "chk-1/gone", *store.names("files/")])
    assert store.names() == ["chk-2/metadata.json"]
    assert store.parts()[0] == "chk-2"


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
