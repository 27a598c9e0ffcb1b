"""Java's Avro, which comes with Spark, as a second opinion: the bytes of values and of defaults are the same there."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pyspark
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.serde.avro_bytes import columns_of_bytes
from tests.serde.test_avro_passing import DEFAULTS
from twopc.java import find_java
from twopc.serde import Avro

pytestmark = [pytest.mark.proof]

PROGRAM = Path(__file__).with_name("JavaAvro.java")
JARS = Path(pyspark.__file__).parent / "jars" / "*"


def by_java(lines: list[tuple[Any, str]]) -> list[bytes]:
    """Return what Java writes of values that it has read, or of defaults."""
    text = "".join(f"{json.dumps(schema)}\t{data}\n" for schema, data in lines)
    command = [str(find_java()), "-cp", str(JARS), str(PROGRAM)]
    found = subprocess.run(command, input=text, capture_output=True, text=True, timeout=120, check=False)
    assert found.returncode == 0, found.stderr[-2000:]
    return [bytes.fromhex(line) for line in found.stdout.splitlines()]


def test_java_writes_what_it_has_read_as_the_same_bytes_as_we_do() -> None:
    drawn: list[tuple[dict[str, Any], bytes]] = []

    @settings(
        max_examples=500, deadline=None, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
    )
    @given(columns_of_bytes())
    def draw(found: tuple[dict[str, Any], list[bytes]]) -> None:
        schema, column = found
        drawn.extend((schema, data) for data in column)

    draw()
    theirs = by_java([(schema, data.hex()) for schema, data in drawn])
    ours = [Avro(schema).serialize(Avro(schema).deserialize(data)) for schema, data in drawn]
    assert len(theirs) == len(ours)
    found = [(schema, data, other) for (schema, data), other in zip(drawn, theirs, strict=True)]
    assert ours == [data for _, data, _ in found]
    # Java's maps keep no order.
    assert [each for each in found if each[1] != each[2] and "map" not in json.dumps(each[0])] == []
    assert [each for each in found if sorted(each[1]) != sorted(each[2])] == []
    assert sum(each[1] == each[2] for each in found) > len(found) / 2


def test_java_writes_defaults_as_we_do() -> None:
    schemas = [
        {"type": "record", "name": "Order", "fields": [{"name": "it", "type": kind, "default": default}]}
        for kind, default, _ in DEFAULTS.values()
    ]
    assert by_java([(schema, "defaults") for schema in schemas]) == [Avro(schema).serialize({}) for schema in schemas]
