"""What the client of object stores says, hides, and outlives; with no server."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from obstore.exceptions import GenericError, PermissionDeniedError

from tests.storage.memory_bucket import MemoryBucket
from twopc.errors import ConfigurationError
from twopc.storage.bucket import PART_BYTES
from twopc.storage.object_store import ObjectStore
from twopc.storage.open import open_store

REFUSAL = (
    "The operation lacked the necessary privileges to complete for path a: Error performing GET "
    "http://127.0.0.1:1/b/a?X-Amz-Signature=5ec7e7 in 5ms - Server returned non-2xx status code: 403 Forbidden: "
    "<Error><Code>SignatureDoesNotMatch</Code><AWSAccessKeyId>5ec7e7</AWSAccessKeyId></Error>\n\nDebug source: 5ec7e7"
)


class FailingBucket(MemoryBucket):
    """Its client raises this."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.__dict__["_client"] = error


@pytest.fixture
def fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def raise_it(client: Exception, *_: Any, **__: Any) -> None:
        raise client

    for call in ("get", "put", "list", "list_with_delimiter"):
        monkeypatch.setattr(f"obstore.{call}", raise_it)


@pytest.fixture
def store() -> ObjectStore:
    return ObjectStore(MemoryBucket(), "checkpoints/")


@pytest.mark.usefixtures("fails")
def test_a_refusal_names_the_variables_to_look_at_and_repeats_nothing_secret() -> None:
    with pytest.raises(
        PermissionError, match=r"403 Forbidden \(SignatureDoesNotMatch\).*AWS_SECRET_ACCESS_KEY"
    ) as told:
        ObjectStore(FailingBucket(PermissionDeniedError(REFUSAL))).get("a")
    assert "5ec7e7" not in str(told.value)
    assert told.value.__cause__ is None


@pytest.mark.usefixtures("fails")
def test_listings_that_are_refused_say_so_too() -> None:
    with pytest.raises(PermissionError, match="SignatureDoesNotMatch"):
        ObjectStore(FailingBucket(GenericError(REFUSAL))).parts()


@pytest.mark.usefixtures("fails")
def test_a_server_that_is_away_is_named_without_the_query_of_the_request() -> None:
    error = GenericError(
        "Error performing GET http://127.0.0.1/b?sig=5ec7e7 in 1s, after 2 retries - HTTP error: timed out"
    )
    with pytest.raises(OSError, match=r"no good answer: HTTP error: timed out; .*AWS_ENDPOINT_URL") as told:
        ObjectStore(FailingBucket(error)).names()
    assert "5ec7e7" not in str(told.value)


@pytest.mark.usefixtures("fails")
def test_a_server_that_is_not_the_providers_own_is_named_without_its_login(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9000".replace("//", "//me:5ec7e7@"))
    with pytest.raises(OSError, match=r"S3 at http:..127\.0\.0\.1:9000 has given no good answer: HTTP error"):
        ObjectStore(FailingBucket(GenericError("HTTP error: error sending request"))).names()
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    with pytest.raises(OSError, match="S3 has given no good answer"):
        ObjectStore(FailingBucket(GenericError("HTTP error: error sending request"))).names()


@pytest.mark.usefixtures("fails")
def test_a_bucket_that_is_not_there_keeps_a_job_from_starting() -> None:
    error = FileNotFoundError("x - Server returned non-2xx status code: 404 Not Found: <Code>NoSuchBucket</Code>")
    with pytest.raises(ConfigurationError, match=r"NoSuchBucket.*name a bucket that is there"):
        ObjectStore(FailingBucket(error)).prepare()


@pytest.mark.usefixtures("fails")
def test_a_server_that_is_away_when_a_job_starts_may_come_back() -> None:
    ObjectStore(FailingBucket(GenericError("HTTP error: error sending request"))).prepare()


def test_a_server_that_overwrites_what_was_to_be_created_is_refused(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MemoryBucket, "create", lambda bucket, name, data: bucket.put(name, [data]))
    with pytest.raises(ConfigurationError, match="ignores conditional creates"):
        store.prepare()
    assert store.names() == []


def test_preparing_leaves_nothing_behind(store: ObjectStore) -> None:
    store.prepare()
    assert (store.names(), store.parts()) == ([], [])


def test_a_create_that_met_another_of_which_nothing_is_left_is_to_be_tried_again(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def taken(*_: object) -> None:
        raise FileExistsError

    monkeypatch.setattr(MemoryBucket, "create", taken)
    with pytest.raises(OSError, match="two creates met") as told:
        store.create_once("ledger/000000000001.json", b"fact")
    assert not isinstance(told.value, FileExistsError)


@pytest.mark.parametrize("size", [0, 1, PART_BYTES, PART_BYTES + 1, 3 * PART_BYTES])
def test_what_is_larger_than_one_request_takes_arrives_whole(store: ObjectStore, size: int) -> None:
    (stored,) = store.put([("files/a", (bytes([number % 251]) * 1_000_000 for number in range(size // 1_000_000)))])
    assert stored.size_bytes == sum(len(chunk) for chunk in store.stream("files/a"))


def test_a_stream_that_breaks_off_stores_nothing(store: ObjectStore) -> None:
    def broken() -> Any:
        yield bytes(PART_BYTES + 1)
        raise OSError(28, "simulated")

    with pytest.raises(OSError, match="simulated"):
        store.put([("files/a", broken())])
    assert store.names() == []


def test_a_process_that_was_forked_from_one_that_has_used_a_store_is_told_instead_of_waiting_for_ever(
    tmp_path: Path,
) -> None:
    program = (
        "import os, twopc.storage.one_process as client\n"
        "client.take_for_this_process('a store')\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    client.take_for_this_process('a store')\n"
        "os.waitpid(child, 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert "ConfigurationError: this process was forked" in done.stderr


def test_opening_a_store_asks_no_server_and_makes_no_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twopc.storage.one_process._used_by", os.getpid() + 1)
    assert open_store("s3://bucket/prefix").within("job").identity == "s3://bucket/prefix/job"


def test_what_the_client_lacks_is_said_with_the_variables_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [each for each in os.environ if each.startswith("AZURE_")]:
        monkeypatch.delenv(name)
    with pytest.raises(ConfigurationError, match=r"az://bucket can't be opened.*AZURE_STORAGE_ACCOUNT_NAME"):
        open_store("az://bucket/prefix").parts()
