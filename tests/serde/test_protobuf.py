from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import DescriptorProto
from google.protobuf.struct_pb2 import Struct

from twopc.errors import ConfigurationError
from twopc.serde import Protobuf


def test_a_nested_class_travels_by_its_name() -> None:
    copy = pickle.loads(pickle.dumps(Protobuf(DescriptorProto.ExtensionRange)))
    assert copy.message is DescriptorProto.ExtensionRange


def test_a_class_beside_the_job_file_is_imported_where_it_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "visit_of_test.proto").write_text(
        'syntax = "proto2"; message Visit { required string page = 1; optional int32 seconds = 2; }'
    )
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{tmp_path}", f"--python_out={tmp_path}"]
    subprocess.run([*command, str(tmp_path / "visit_of_test.proto")], check=True)
    monkeypatch.syspath_prepend(str(tmp_path))
    visit = __import__("visit_of_test_pb2").Visit
    serde = Protobuf(visit)
    sent = pickle.dumps(serde)
    assert pickle.loads(sent).deserialize(serde.serialize(visit(page="/", seconds=3))).seconds == 3
    with pytest.raises(ValueError, match="Visit lacks what it requires: page"):
        serde.serialize(visit(seconds=3))


def test_a_class_that_can_not_be_imported_is_refused_when_the_job_is_built() -> None:
    file = descriptor_pb2.FileDescriptorProto(name="nowhere.proto", syntax="proto3")
    file.message_type.add(name="Nowhere")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    made = message_factory.GetMessageClass(pool.FindMessageTypeByName("Nowhere"))
    with pytest.raises(ConfigurationError, match="Nowhere given to Protobuf can't be imported"):
        Protobuf(made)


@pytest.mark.parametrize("no_class", [Struct(), dict, "Struct"])
def test_what_is_no_message_class_is_refused(no_class: object) -> None:
    with pytest.raises(ConfigurationError, match="must be given a message class of a _pb2 module"):
        Protobuf(no_class)  # type: ignore[arg-type]


def test_a_message_of_another_class_is_refused_by_both_names() -> None:
    with pytest.raises(TypeError, match=r"Protobuf.google.protobuf.Struct., so .* not DescriptorProto"):
        Protobuf(Struct).serialize(DescriptorProto())


def test_bytes_that_are_no_message_are_named_by_it() -> None:
    with pytest.raises(ValueError, match=r"these bytes are no google.protobuf.Struct"):
        Protobuf(Struct).deserialize(b"\xff")


def test_a_map_has_one_form_whatever_the_order_in_which_it_was_filled() -> None:
    one, other = Struct(), Struct()
    one.update({"a": 1, "b": 2})
    other.update({"b": 2, "a": 1})
    assert Protobuf(Struct).serialize(one) == Protobuf(Struct).serialize(other)
