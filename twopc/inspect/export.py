"""Writes entries to a file, JSON lines or Parquet, as they come: memory is bounded, whatever the state's size.

Invariant: the file has its name only when it is whole. A crash leaves a file whose name says that it is temporary.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import IO, Any

from twopc.errors import ConfigurationError
from twopc.inspect.entry import StateEntry
from twopc.inspect.rows import row_of
from twopc.state.key_form import MARK
from twopc.storage.files import TEMPORARY

ROWS_PER_BATCH = 10_000
BYTES_PER_BATCH = 16 * 1024 * 1024


class ExportFormat(StrEnum):
    """The formats of a file: a JSON object a line, or a Parquet table."""

    JSONL = "jsonl"
    PARQUET = "parquet"


def format_of(path: Path) -> ExportFormat:
    """Return the format that a file's name asks for."""
    suffix = path.suffix.removeprefix(".")
    if suffix not in list(ExportFormat):
        raise ConfigurationError(f"{path.name} doesn't say its format: end it with .jsonl or .parquet")
    return ExportFormat(suffix)


def export_to(path: Path, entries: Iterable[StateEntry], *, replace: bool = False) -> int:
    """Write the entries to a file of the format that its name asks for; return how many there were.

    Raises ConfigurationError if the file exists, unless it may be replaced, and if its folder doesn't.
    """
    write = {ExportFormat.JSONL: write_lines, ExportFormat.PARQUET: write_parquet}[format_of(path)]
    if not replace and os.path.lexists(path):
        raise ConfigurationError(f"{path} exists: name another file, or say --force to replace it")
    if not path.parent.is_dir():
        raise ConfigurationError(f"{path} can't be written: there is no folder {path.parent}")
    temporary = path.with_name(f"{TEMPORARY}{path.name}-{secrets.token_hex(8)}")
    try:
        descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            count = write(file, entries)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    return count


def write_lines(file: IO[bytes], entries: Iterable[StateEntry]) -> int:
    """Write each entry as one line of JSON."""
    count = 0
    for entry in entries:
        file.write(json.dumps(row_of(entry), ensure_ascii=False, allow_nan=False).encode() + b"\n")
        count += 1
    return count


def write_parquet(file: IO[bytes], entries: Iterable[StateEntry]) -> int:
    """Write a table with keys and values as text where there is one (values in JSON), and always as bytes."""
    import pyarrow as pa
    from pyarrow import parquet

    schema = pa.schema(
        [
            *(pa.field(name, pa.string(), nullable=False) for name in ("operator", "state")),
            pa.field("subtask", pa.int32(), nullable=False),
            *(("partition", pa.int32()), *((name, pa.string()) for name in ("key", "key_json", "value"))),
            *(pa.field(name, pa.binary(), nullable=False) for name in ("key_bytes", "value_bytes")),
        ]
    )
    count = 0
    with parquet.ParquetWriter(file, schema, compression="zstd") as writer:
        for batch in _batches(entries):
            writer.write_table(pa.Table.from_pylist(list(map(_parquet_row, batch)), schema))
            count += len(batch)
    return count


def _parquet_row(entry: StateEntry) -> dict[str, Any]:
    row = row_of(entry)
    value = json.dumps(row["value"], ensure_ascii=False, allow_nan=False) if "value" in row else None
    return {
        **{name: row[name] for name in ("operator", "state", "subtask", "partition")},
        "key": row.get("key"),
        "key_json": json.dumps(row["key_json"], ensure_ascii=False) if "key_json" in row else None,
        "value": value,
        "key_bytes": entry.key if isinstance(entry.key, bytes) else entry.stored_key[len(MARK) :],
        "value_bytes": entry.raw,
    }


def _batches(entries: Iterable[StateEntry]) -> Iterator[list[StateEntry]]:
    batch: list[StateEntry] = []
    size = 0
    for entry in entries:
        batch.append(entry)
        size += len(entry.stored_key) + len(entry.raw)
        if len(batch) >= ROWS_PER_BATCH or size >= BYTES_PER_BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
