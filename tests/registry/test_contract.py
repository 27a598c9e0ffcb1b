"""What serdes may expect of a registry: the same of the one in memory and of a real one."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.descriptor_pb2 import DescriptorProto
from google.protobuf.wrappers_pb2 import StringValue

from tests.registry.kit import BILL, MONEY, ORDER, ORDER_2, ORDER_OF_TEXT, VISIT, reading, writing
from twopc import ConfigurationError, SchemaReference, SchemaRegistry

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


# One process of the tests starts the real one, for all that ask it.
REAL = pytest.param("real", marks=[pytest.mark.broker, pytest.mark.xdist_group("registry")])


@pytest.fixture(params=["memory", REAL])
def url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(f"{request.param}_registry").url)


@pytest.fixture
def topic() -> str:
    return f"t-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def registry(url: str) -> SchemaRegistry:
    return SchemaRegistry(url)


@pytest.fixture
def registering(url: str) -> SchemaRegistry:
    return SchemaRegistry(url, auto_register=True)


def written(registering: SchemaRegistry, topic: str) -> bytes:
    data = writing(registering.avro(ORDER), topic).serialize({"id": 7, "at": AT})
    assert data is not None
    return data


def test_what_is_written_reads_back_equal(registry: SchemaRegistry, registering: SchemaRegistry, topic: str) -> None:
    data = written(registering, topic)
    assert data[0] == 0
    assert reading(registry.avro(ORDER), topic).deserialize(data) == {"id": 7, "at": AT}


def test_an_earlier_version_is_read_into_the_schema_of_the_reader(
    registry: SchemaRegistry, registering: SchemaRegistry, topic: str
) -> None:
    data = written(registering, topic)
    assert reading(registry.avro(ORDER_2), topic).deserialize(data) == {"id": 7, "at": AT, "note": "-"}


def test_without_a_schema_a_value_is_read_as_it_was_written(
    registry: SchemaRegistry, registering: SchemaRegistry, topic: str
) -> None:
    data = written(registering, topic)
    assert reading(registry.avro(), topic).deserialize_all([data, None]) == [{"id": 7, "at": AT}, None]


def test_versions_in_one_column_are_read_each_by_its_own(
    registry: SchemaRegistry, registering: SchemaRegistry, topic: str
) -> None:
    old = written(registering, topic)
    new = writing(registering.avro(ORDER_2), topic).serialize({"id": 8, "at": AT, "note": "new"})
    notes = [value["note"] for value in reading(registry.avro(ORDER_2), topic).deserialize_all([old, new, old])]
    assert notes == ["-", "new", "-"]


def test_a_schema_that_is_registered_is_found_however_it_is_written(
    registry: SchemaRegistry, registering: SchemaRegistry, topic: str
) -> None:
    turned = {key: ORDER[key] for key in reversed(ORDER)}
    data = written(registering, topic)
    again = writing(registry.avro(turned), topic).serialize({"id": 7, "at": AT})
    assert reading(registry.avro(), topic).deserialize(again) == {"id": 7, "at": AT}
    assert (again or b"")[5:] == data[5:]


def test_a_schema_that_is_not_registered_is_refused(registry: SchemaRegistry, topic: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"'{topic}-value', which has no schema.*auto_register=True"):
        writing(registry.avro(ORDER), topic)


def test_a_next_version_that_is_not_registered_is_refused(
    registry: SchemaRegistry, registering: SchemaRegistry, topic: str
) -> None:
    written(registering, topic)
    with pytest.raises(ConfigurationError, match="differs from its version 1; it may be the next one"):
        writing(registry.avro(ORDER_2), topic)


def test_an_incompatible_schema_is_refused_where_it_is_not_registered(
    registry: SchemaRegistry, registering: SchemaRegistry, topic: str
) -> None:
    written(registering, topic)
    with pytest.raises(ConfigurationError, match="not compatible with its version 1"):
        writing(registry.avro(ORDER_OF_TEXT), topic)


def test_an_incompatible_schema_is_not_registered(registering: SchemaRegistry, topic: str) -> None:
    written(registering, topic)
    with pytest.raises(ConfigurationError, match=rf"shop.Order\) is not compatible with what subject '{topic}-value'"):
        writing(registering.avro(ORDER_OF_TEXT), topic)


def test_a_schema_that_can_not_read_the_newest_version_is_refused(
    registry: SchemaRegistry, registering: SchemaRegistry, topic: str
) -> None:
    written(registering, topic)
    with pytest.raises(ConfigurationError, match=r"version 1 of subject .*Order.id is int, and must be string"):
        reading(registry.avro(ORDER_OF_TEXT), topic)


def test_a_subject_of_another_type_is_refused(
    registry: SchemaRegistry, registering: SchemaRegistry, topic: str
) -> None:
    written(registering, topic)
    with pytest.raises(ConfigurationError, match="is AVRO, and the serde reads JSON"):
        reading(registry.json(), topic)


def test_an_id_that_is_not_there_is_the_fault_of_its_value(
    registry: SchemaRegistry, registering: SchemaRegistry, topic: str
) -> None:
    written(registering, topic)
    with pytest.raises(ValueError, match="has no schema 65537"):
        reading(registry.avro(), topic).deserialize(b"\0\0\1\0\1rest")


def test_a_type_of_another_subject_is_a_reference(
    registry: SchemaRegistry, registering: SchemaRegistry, topic: str
) -> None:
    money = f"{topic}-money"
    writing(registering.avro(MONEY, subject=money), topic)
    bill = {"total": {"amount": Decimal("12.50")}, "tax": {"amount": Decimal("0.25")}}
    serde = registering.avro(BILL, references=[SchemaReference("shop.base.Money", money, 1)])
    data = writing(serde, topic).serialize(bill)
    assert reading(registry.avro(), topic).deserialize(data) == bill


def test_a_reference_to_what_is_not_there_is_refused(registering: SchemaRegistry, topic: str) -> None:
    serde = registering.avro(BILL, references=[SchemaReference("shop.base.Money", f"{topic}-money", 1)])
    with pytest.raises(ConfigurationError, match=f"no version 1 of subject '{topic}-money'"):
        writing(serde, topic)


def test_json_is_valid_both_ways(registry: SchemaRegistry, registering: SchemaRegistry, topic: str) -> None:
    serde = writing(registering.json(VISIT), topic)
    data = serde.serialize({"user": "ada"})
    assert reading(registry.json(), topic).deserialize(data) == {"user": "ada"}
    with pytest.raises(ValueError, match=r"\$\.user: 3 is not of type 'string'"):
        serde.serialize({"user": 3})
    with pytest.raises(ValueError, match="'user' is a required property"):
        reading(registry.json(VISIT), topic).deserialize((data or b"")[:5] + b"{}")


def test_json_refers_to_other_subjects(registry: SchemaRegistry, registering: SchemaRegistry, topic: str) -> None:
    visit = f"{topic}-visit"
    writing(registering.json(VISIT, subject=visit), topic)
    # Apicurio takes what has neither $schema nor properties for no JSON Schema, whatever it is called.
    visits = {"title": "Visits", "type": "object", "properties": {"last": {"$ref": "visit.json"}}}
    serde = registering.json(visits, references=[SchemaReference("visit.json", visit, 1)])
    data = writing(serde, topic).serialize({"last": {"user": "ada"}})
    assert reading(registry.json(), topic).deserialize(data) == {"last": {"user": "ada"}}
    with pytest.raises(ValueError, match=r"\$\.last\.user"):
        writing(serde, topic).serialize({"last": {"user": 3}})


def test_messages_are_written_with_their_place_in_the_file(
    registry: SchemaRegistry, registering: SchemaRegistry, topic: str
) -> None:
    value = StringValue(value="hi")
    data = writing(registering.protobuf(StringValue), topic).serialize(value)
    # StringValue is the eighth message of wrappers.proto.
    assert (data or b"")[5:7] == b"\x02\x0e"
    assert reading(registry.protobuf(StringValue), topic).deserialize(data) == value


def test_a_nested_message_is_found_again(registry: SchemaRegistry, registering: SchemaRegistry, topic: str) -> None:
    value = DescriptorProto.ExtensionRange(start=3)
    data = writing(registering.protobuf(DescriptorProto.ExtensionRange), topic).serialize(value)
    assert reading(registry.protobuf(DescriptorProto.ExtensionRange), topic).deserialize(data) == value


def test_imports_of_a_message_are_subjects_of_their_own(
    registry: SchemaRegistry, registering: SchemaRegistry, topic: str, imported_message: type[Any]
) -> None:
    with pytest.raises(ConfigurationError, match=r"'registry_money.proto', which a message imports, is not registered"):
        writing(registry.protobuf(imported_message), topic)
    value = imported_message(name="tea")
    data = writing(registering.protobuf(imported_message), topic).serialize(value)
    assert writing(registry.protobuf(imported_message), topic).serialize(value) == data
    assert reading(registry.protobuf(imported_message), topic).deserialize(data) == value


def test_confluents_own_avro_serdes_have_the_same_bytes(url: str, registering: SchemaRegistry, topic: str) -> None:
    from confluent_kafka.schema_registry import SchemaRegistryClient
    from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer

    ours = written(registering, topic)
    context = SerializationContext(topic, MessageField.VALUE)
    with SchemaRegistryClient({"url": url}) as client:
        assert AvroDeserializer(client)(ours, context) == {"id": 7, "at": AT}
        config = {"auto.register.schemas": False, "normalize.schemas": True}
        assert AvroSerializer(client, json.dumps(ORDER), conf=config)({"id": 7, "at": AT}, context) == ours


def test_confluents_own_json_serdes_read_and_write_the_same(url: str, registering: SchemaRegistry, topic: str) -> None:
    from confluent_kafka.schema_registry import SchemaRegistryClient
    from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer

    ours = writing(registering.json(VISIT), topic).serialize({"user": "ada"}) or b""
    context = SerializationContext(topic, MessageField.VALUE)
    with SchemaRegistryClient({"url": url}) as client:
        assert JSONDeserializer(json.dumps(VISIT), schema_registry_client=client)(ours, context) == {"user": "ada"}
        config = {"auto.register.schemas": False, "normalize.schemas": True}
        theirs = JSONSerializer(json.dumps(VISIT), client, conf=config)({"user": "ada"}, context)
    assert theirs[:5] == ours[:5]
    assert reading(registering.json(VISIT), topic).deserialize(theirs) == {"user": "ada"}


@pytest.fixture(scope="module")
def imported_message(tmp_path_factory: pytest.TempPathFactory) -> Iterator[type[Any]]:
    folder = tmp_path_factory.mktemp("proto")
    (folder / "registry_money.proto").write_text('syntax = "proto3"; package shop; message Money { int64 cents = 1; }')
    (folder / "registry_item.proto").write_text(
        'syntax = "proto3"; package shop; import "registry_money.proto"; '
        "message Item { string name = 1; Money price = 2; }"
    )
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{folder}", f"--python_out={folder}"]
    subprocess.run([*command, *map(str, folder.glob("*.proto"))], check=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        yield __import__("registry_item_pb2").Item
