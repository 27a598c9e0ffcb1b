"""The committed code is what protoc makes of the committed contract."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GENERATED = ("control_pb2.py", "control_pb2.pyi", "control_pb2_grpc.py")


def test_the_generated_code_is_fresh(tmp_path: Path) -> None:
    protoc = pytest.importorskip("grpc_tools.protoc")
    arguments = ["protoc", f"-I{ROOT / 'proto'}", f"--python_out={tmp_path}", f"--pyi_out={tmp_path}"]
    status = protoc.main([*arguments, f"--grpc_python_out={tmp_path}", "twopc/rpc/control.proto"])
    assert status == 0
    for name in GENERATED:
        fresh = (tmp_path / "twopc" / "rpc" / name).read_text()
        assert (ROOT / "twopc" / "rpc" / name).read_text() == fresh, f"{name} is stale: generate it again"
