"""The contents that are put into a store over a network, as a stream: at its end size and digest are known."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from twopc.storage.local_files import read_chunks
from twopc.storage.safe_read import open_regular
from twopc.storage.store import Content, StoredObject


class CountedStream:
    """Bytes on their way, to be taken once."""

    def __init__(self, content: Content) -> None:
        self._chunks = _chunks_of(content)
        self._size_bytes = 0
        self._digest = hashlib.sha256()

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._chunks:
            self._digest.update(chunk)
            self._size_bytes += len(chunk)
            yield chunk

    def stored(self, name: str) -> StoredObject:
        """Return what has been put under this name by now."""
        return StoredObject(name, self._size_bytes, self._digest.hexdigest())


def _chunks_of(content: Content) -> Iterator[bytes]:
    match content:
        case bytes():
            yield content
        case Path():
            with os.fdopen(open_regular(content), "rb", 0) as reading:
                yield from read_chunks(reading.fileno())
        case _:
            yield from content
