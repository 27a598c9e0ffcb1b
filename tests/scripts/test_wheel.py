"""A wheel without what is compiled is refused."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

import pytest

from scripts.wheel import main

PARTS = ["twopc/kafka/native/_batches", "twopc/operators/_loops", "twopc/serde/_avro"]


def wheel(folder: Path, *parts: str) -> None:
    with ZipFile(folder / "twopc.whl", "w") as made:
        for part in (*parts, "twopc/serde/plain"):
            made.writestr(f"{part}.abi3.so" if part in PARTS else f"{part}.py", b"")


def test_a_wheel_with_every_part_is_taken(tmp_path: Path) -> None:
    wheel(tmp_path, *PARTS)
    assert main(tmp_path) == 0


def test_a_part_that_was_not_built_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wheel(tmp_path, *PARTS[1:])
    assert main(tmp_path) == 1
    assert f"lacks {PARTS[0]}: the compiler failed" in capsys.readouterr().err
