"""The committed code is what protoc makes of the committed contracts."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.generate import ROOT, generate, protos


def test_the_generated_code_is_fresh(tmp_path: Path) -> None:
    pytest.importorskip("grpc_tools.protoc")
    for name in generate(tmp_path):
        assert (ROOT / name).read_text() == (tmp_path / name).read_text(), f"{name} is stale: make generate"


def test_every_contract_is_made_into_code() -> None:
    assert protos() == ["twopc/rpc/admin.proto", "twopc/rpc/control.proto"]
