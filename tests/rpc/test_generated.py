"""The committed code is what protoc makes of the committed contracts."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from scripts.generate import ROOT, generate, protos


def test_the_generated_code_is_fresh(tmp_path: Path) -> None:
    pytest.importorskip("grpc_tools.protoc")
    for name in generate(tmp_path):
        assert (ROOT / name).read_text() == (tmp_path / name).read_text(), f"{name} is stale: make generate"


def test_every_contract_is_made_into_code() -> None:
    assert protos() == ["twopc/rpc/admin.proto", "twopc/rpc/control.proto"]


@pytest.mark.parametrize(
    ("package", "file", "written"),
    [
        ("protobuf", "control_pb2.py", r"# Protobuf Python Version: ([\d.]+)"),
        ("grpcio", "control_pb2_grpc.py", r"GRPC_GENERATED_VERSION = '([\d.]+)'"),
    ],
)
def test_the_generated_code_runs_with_the_oldest_package_that_may_be_installed(
    package: str, file: str, written: str
) -> None:
    made_by = re.search(written, (ROOT / "twopc/rpc" / file).read_text())
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    oldest = next(each for each in wanted if each.startswith(f"{package}>=")).partition(">=")[2]
    assert made_by is not None
    assert _numbers(oldest) >= _numbers(made_by[1]), "its import would fail"


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]
