"""An export is whole or not there, says all that is stored, and takes memory for a batch."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyarrow import parquet

from twopc.errors import ConfigurationError
from twopc.inspect import StateEntry, export
from twopc.inspect.export import export_to
from twopc.protocol.ids import SubtaskIndex
from twopc.serde import Json
from twopc.state.key_form import key_bytes
from twopc.state.layout import StateName


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "ROWS_PER_BATCH", 100)
    monkeypatch.setattr(export, "BYTES_PER_BATCH", 500_000)


def entries(count: int) -> Iterator[StateEntry]:
    for number in range(count):
        yield StateEntry(StateName.parse("count"), SubtaskIndex(0), 0, b"k%d" % number, b"%d" % number, Json())


UNREADABLE = StateEntry(StateName.parse("count"), SubtaskIndex(0), 0, key_bytes(b"\xff"), b"{", Json())


def test_json_lines_hold_a_row_for_each_entry(tmp_path: Path) -> None:
    assert export_to(tmp_path / "out.jsonl", [*entries(2), UNREADABLE]) == 3
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [(line.get("key"), line.get("value")) for line in lines] == [("k0", 0), ("k1", 1), (None, None)]
    assert lines[2]["value_base64"] == "ew=="


def test_parquet_holds_a_row_for_each_entry_with_the_bytes(tmp_path: Path) -> None:
    assert export_to(tmp_path / "out.parquet", [*entries(250), UNREADABLE]) == 251
    read = parquet.ParquetFile(tmp_path / "out.parquet")
    rows = read.read().to_pylist()
    assert read.num_row_groups == 3
    assert rows[7] == {
        "operator": "count",
        "state": "count",
        "subtask": 0,
        "partition": 0,
        "key": "k7",
        "key_json": None,
        "value": "7",
        "key_bytes": b"k7",
        "value_bytes": b"7",
    }
    assert (rows[-1]["key"], rows[-1]["value"], rows[-1]["key_bytes"], rows[-1]["value_bytes"]) == (
        *(None, None),
        *(b"\xff", b"{"),
    )


def test_the_columns_of_an_empty_parquet_file_are_there(tmp_path: Path) -> None:
    assert export_to(tmp_path / "out.parquet", []) == 0
    assert parquet.read_table(tmp_path / "out.parquet").column_names[:3] == ["operator", "state", "subtask"]


@pytest.mark.parametrize("name", ["out.jsonl", "out.parquet"])
def test_an_export_that_fails_leaves_nothing_and_spares_what_was_there(tmp_path: Path, name: str) -> None:
    def failing() -> Iterator[StateEntry]:
        yield from entries(200)
        raise ConfigurationError("no more")

    with pytest.raises(ConfigurationError, match="no more"):
        export_to(tmp_path / name, failing())
    assert list(tmp_path.iterdir()) == []
    (tmp_path / name).write_text("earlier")
    with pytest.raises(ConfigurationError, match="no more"):
        export_to(tmp_path / name, failing(), replace=True)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["earlier"]


def test_a_file_that_exists_is_replaced_only_on_demand(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text("earlier")
    with pytest.raises(ConfigurationError, match=r"out\.jsonl exists"):
        export_to(path, entries(1))
    export_to(path, entries(1), replace=True)
    assert len(path.read_text().splitlines()) == 1


def test_a_name_that_says_no_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"out\.csv doesn't say its format: end it with \.jsonl or \.parquet"):
        export_to(tmp_path / "out.csv", entries(1))


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"there is no folder .*nowhere"):
        export_to(tmp_path / "nowhere" / "out.jsonl", entries(1))


@pytest.mark.parametrize("name", ["out.jsonl", "out.parquet"])
def test_memory_does_not_grow_with_the_state(tmp_path: Path, name: str) -> None:
    values = (
        StateEntry(
            StateName.parse("s"), SubtaskIndex(0), 0, b"%d" % number, b'"%s"' % (b"%d" % number * 100_000), Json()
        )
        for number in range(10, 99)
    )
    export_to(tmp_path / f"first-{name}", entries(1))  # what is imported only once is not of the state's size
    tracemalloc.start()
    assert export_to(tmp_path / name, values) == 89
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5_000_000, "of 17,800,000 bytes of values"
