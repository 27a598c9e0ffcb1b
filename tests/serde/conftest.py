from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.compiled_parts import compiled_part
from twopc.compiled import AVRO
from twopc.serde.avro_schema import prepared
from twopc.variables import NATIVE


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have Avro go by the compiled codec; skip where it was not built."""
    compiled_part(AVRO)
    monkeypatch.delenv(NATIVE, raising=False)
    prepared.cache_clear()
    yield
    prepared.cache_clear()
