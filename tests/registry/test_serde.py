"""A serde of a registry in a job: refused, waited for, and never a leak."""

from __future__ import annotations

import logging
import pickle
import ssl
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.compiled_parts import compiled_part
from tests.registry.kit import ORDER, ORDER_2, VISIT, reading, writing
from tests.rpc.certificates import LOOPBACK, Authority
from twopc import ConfigurationError, Job, KafkaSource, Processor, SchemaRegistry, ValueState
from twopc.column import ColumnError
from twopc.compiled import AVRO
from twopc.connect import SerdeContext
from twopc.errors import Unavailable
from twopc.kafka.registry import client as registry_client
from twopc.testing import MemoryRegistry
from twopc.variables import NATIVE


@pytest.fixture
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry_client, "ANSWER_BUDGET_SECONDS", 0.1)


def test_a_registry_that_is_away_is_waited_for_and_that_is_said_once(
    memory_registry: MemoryRegistry, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(registry_client, "SILENT_SECONDS", 0.0)
    serde = SchemaRegistry(memory_registry.url, auto_register=True).avro(ORDER)
    memory_registry.stop()

    def turns(_: float) -> Iterator[None]:
        yield from [None] * 3
        memory_registry.start()
        yield

    monkeypatch.setattr(registry_client, "backoff", turns)
    assert writing(serde, "orders").serialize({"id": 1, "at": 0}) is not None
    said = [record for record in caplog.records if "does not answer" in record.message]
    assert len(said) == 1


@pytest.mark.usefixtures("_impatient")
def test_a_registry_that_stays_away_is_unavailable_and_no_record_is_at_fault(memory_registry: MemoryRegistry) -> None:
    registry = SchemaRegistry(memory_registry.url, auto_register=True)
    data = writing(registry.avro(ORDER), "orders").serialize({"id": 1, "at": 0})
    reader = reading(registry.avro(), "others")
    memory_registry.stop()
    with pytest.raises(Unavailable, match="does not answer"):
        reader.deserialize_all([data])
    memory_registry.start()
    assert reader.deserialize_all([data])[0]["id"] == 1


def test_a_column_of_several_schemas_and_tombstones_is_read_as_its_values_are(memory_registry: MemoryRegistry) -> None:
    registry = SchemaRegistry(memory_registry.url, auto_register=True)
    old = writing(registry.avro(ORDER), "orders").serialize_all([{"id": number, "at": 0} for number in range(40)])
    new = writing(registry.avro(ORDER_2), "orders").serialize_all([{"id": 1, "at": 0, "note": "x"}, None] * 20)
    column = [each for pair in zip(old, new, strict=True) for each in pair] + old
    for serde in (registry.avro(), registry.avro(ORDER_2)):
        reader = reading(serde, "orders")
        assert reader.deserialize_all(column) == [reader.deserialize(data) for data in column]


def test_a_column_is_written_as_its_values_are(memory_registry: MemoryRegistry) -> None:
    writer = writing(SchemaRegistry(memory_registry.url, auto_register=True).avro(ORDER), "orders")
    column = [{"id": 1, "at": 0}, None, {"id": 2, "at": 5}]
    assert writer.serialize_all(column) == [writer.serialize(value) for value in column]
    with pytest.raises(ColumnError, match=r"element 1: AvroError: Order.at is missing"):
        writer.serialize_all([{"id": 1, "at": 0}, {"id": 2}])


def test_right_values_of_the_schema_in_the_job_never_go_one_by_one(
    memory_registry: MemoryRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled_part(AVRO)
    monkeypatch.delenv(NATIVE, raising=False)
    # A name of its own: what was prepared of another test's schema may be without the compiled codec.
    schema = {**ORDER, "name": "CompiledOrder"}
    registry = SchemaRegistry(memory_registry.url, auto_register=True)
    monkeypatch.setattr("twopc.serde.avro_named.Record.read", None)
    monkeypatch.setattr("twopc.serde.avro_named.Record.write", None)
    column = [{"id": number, "at": datetime.fromtimestamp(number, UTC)} for number in range(100)]
    data = writing(registry.avro(schema), "orders").serialize_all(column)
    assert reading(registry.avro(schema), "orders").deserialize_all(data) == column


def test_a_schema_is_asked_for_once(memory_registry: MemoryRegistry) -> None:
    registry = SchemaRegistry(memory_registry.url, auto_register=True)
    data = writing(registry.avro(ORDER), "orders").serialize({"id": 1, "at": 0})
    reader = reading(registry.avro(), "others")
    for _ in range(3):
        reader.deserialize_all([data, data])
    assert len([each for each in memory_registry.requests if each.startswith("GET /schemas/ids/")]) == 1


def test_an_id_that_was_not_there_is_asked_for_again(memory_registry: MemoryRegistry) -> None:
    registry = SchemaRegistry(memory_registry.url)
    reader = reading(registry.avro(), "orders")
    data = b"\0\0\0\0\1" + bytes([2, 0])
    with pytest.raises(ValueError, match="no schema 1"):
        reader.deserialize(data)
    memory_registry.register("orders-value", ORDER)
    assert reader.deserialize(data)["id"] == 1


def test_one_value_that_can_not_be_read_leaves_the_others_readable(memory_registry: MemoryRegistry) -> None:
    registry = SchemaRegistry(memory_registry.url, auto_register=True)
    data = writing(registry.avro(ORDER), "orders").serialize({"id": 1, "at": 0})
    reader = reading(registry.avro(), "orders")
    with pytest.raises(Exception, match="element 1: ValueError: a value of a schema registry begins with a zero byte"):
        reader.deserialize_all([data, b"plain text", data])


@pytest.mark.parametrize(
    ("subjects", "expected"),
    [("topic", "orders-value"), ("record", "shop.Order"), ("topic-record", "orders-shop.Order")],
)
def test_subjects_are_named_by_the_strategy(memory_registry: MemoryRegistry, subjects: str, expected: str) -> None:
    registry = SchemaRegistry(memory_registry.url, auto_register=True, subjects=subjects)
    writing(registry.avro(ORDER), "orders")
    assert f"POST /subjects/{expected}/versions" in memory_registry.requests


def test_keys_have_a_subject_of_their_own(memory_registry: MemoryRegistry) -> None:
    writing(SchemaRegistry(memory_registry.url, auto_register=True).avro(ORDER), "orders", is_key=True)
    assert "POST /subjects/orders-key/versions" in memory_registry.requests


def test_an_unknown_strategy_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="'topic', 'record', 'topic-record', not 'nix'"):
        SchemaRegistry("http://127.0.0.1:1", subjects="nix")


def test_nothing_is_written_without_a_schema(memory_registry: MemoryRegistry) -> None:
    with pytest.raises(ConfigurationError, match="has no schema: give it one"):
        writing(SchemaRegistry(memory_registry.url).avro(), "orders")


def test_a_login_is_needed_where_the_registry_wants_one() -> None:
    with MemoryRegistry(login="ada:secret") as registry:
        with pytest.raises(ConfigurationError, match="refuses the login"):
            writing(SchemaRegistry(registry.url, auto_register=True).avro(ORDER), "orders")
        login = {"basic.auth.user.info": "ada:secret"}
        writing(SchemaRegistry(registry.url, properties=login, auto_register=True).avro(ORDER), "orders")
        url = registry.url.replace("//", "//ada:secret@")
        writing(SchemaRegistry(url, auto_register=True).avro(ORDER), "orders")


def test_what_a_file_says_need_not_stand_in_the_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with MemoryRegistry(login="ada:secret") as registry:
        (tmp_path / "registry.properties").write_text("# of tests\nbasic.auth.user.info = ada:secret\ntimeout=3\n")
        monkeypatch.setenv("TWOPC_SCHEMA_REGISTRY_URL", registry.url)
        monkeypatch.setenv("TWOPC_SCHEMA_REGISTRY_CONFIG", str(tmp_path / "registry.properties"))
        assert writing(SchemaRegistry(auto_register=True).avro(ORDER), "orders").serialize(None) is None


def test_tls_is_spoken_with_whom_the_authority_vouches_for(tmp_path: Path) -> None:
    authority, other = Authority(tmp_path, "authority"), Authority(tmp_path, "other")
    identity = authority.issue("registry", LOOPBACK)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(identity.cert, identity.key)
    with MemoryRegistry(tls=tls) as registry:
        for file in (authority.file, other.file):
            properties = {"ssl.ca.location": str(file)}
            serde = SchemaRegistry(registry.url, properties=properties, auto_register=True).avro(ORDER)
            if file == authority.file:
                writing(serde, "orders")
            else:
                with pytest.raises(ConfigurationError, match="can't be trusted"):
                    writing(serde, "orders")


def test_no_secret_is_shown(memory_registry: MemoryRegistry, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    url = memory_registry.url.replace("//", "//ada:sesame@")
    registry = SchemaRegistry(url, auto_register=True)
    serde = registry.avro(ORDER)
    opened = writing(serde, "orders")
    shown = [repr(each) for each in (registry, serde, opened, serde.access)] + [str(serde.access), caplog.text]
    assert [each for each in shown if "sesame" in each] == []


@pytest.mark.parametrize(
    ("url", "properties", "said"),
    [
        (None, {}, "needs the address of one"),
        ("kafka:8081", {}, "http:// or https://"),
        ("http://127.0.0.1:1", {"max.retries": 3}, "'max.retries' is no property"),
        ("http://127.0.0.1:1", {"basic.auth.user.info": "ada"}, "must be USER:PASSWORD"),
        ("http://127.0.0.1:1", {"ssl.ca.location": "nowhere.pem"}, "nowhere.pem', which is not there"),
        ("http://127.0.0.1:1", {"timeout": "soon"}, "a number of seconds"),
    ],
)
def test_what_can_not_be_meant_is_refused_when_the_job_is_built(
    url: str | None, properties: dict[str, object], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TWOPC_SCHEMA_REGISTRY_URL", raising=False)
    with pytest.raises(ConfigurationError, match=said):
        SchemaRegistry(url, properties=properties)


def test_what_is_no_schema_is_refused_when_the_job_is_built() -> None:
    registry = SchemaRegistry("http://127.0.0.1:1")
    with pytest.raises(ConfigurationError, match="not an Avro schema"):
        registry.avro({"type": "record"})
    with pytest.raises(ConfigurationError, match=r"not a JSON Schema: 3 is not valid"):
        registry.json({"type": 3})
    with pytest.raises(ConfigurationError, match=r"nowhere.avsc can't be read"):
        registry.avro("nowhere.avsc")


def test_what_answers_may_be_no_registry(memory_registry: MemoryRegistry) -> None:
    with pytest.raises(ConfigurationError, match="is no schema registry"):
        writing(SchemaRegistry(f"{memory_registry.url}/elsewhere").avro(ORDER), "orders")


def test_a_state_can_not_have_a_serde_of_a_registry() -> None:
    serde = SchemaRegistry("http://127.0.0.1:1").avro(ORDER)
    with pytest.raises(ConfigurationError, match="a state belongs to no topic"):
        Job("j").source(KafkaSource("in")).stateful_map(lambda state, value: (state, value), name="s", state=serde)
    with pytest.raises(ConfigurationError, match="a state belongs to no topic"):

        class _Kept(Processor):
            last = ValueState(serde)


def test_a_serde_is_a_description_that_travels(memory_registry: MemoryRegistry) -> None:
    serde = SchemaRegistry(memory_registry.url, auto_register=True).json(VISIT)
    copy = pickle.loads(pickle.dumps(serde))
    assert copy == serde
    assert writing(copy, "visits").serialize({"user": "ada"}) == b'\0\0\0\0\1{"user":"ada"}'


def test_what_is_not_opened_refuses_to_work() -> None:
    with pytest.raises(ConfigurationError, match="open it for one"):
        SchemaRegistry("http://127.0.0.1:1").avro(ORDER).deserialize(b"")


@pytest.mark.usefixtures("_impatient")
def test_what_failed_to_open_holds_no_connection() -> None:
    began = time.monotonic()
    with pytest.raises(Unavailable):
        SchemaRegistry("http://127.0.0.1:1").avro(ORDER).open(SerdeContext("orders", is_key=False))
    assert time.monotonic() - began < 30
