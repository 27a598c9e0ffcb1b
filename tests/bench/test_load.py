from __future__ import annotations

import json
from pathlib import Path

import pytest

from twopc.bench.load import values_of
from twopc.bench.plan import BenchPlan
from twopc.errors import ConfigurationError
from twopc.serde import Avro, Bytes, Json

SCHEMA = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}, {"name": "s", "type": "string"}]}


@pytest.mark.parametrize("size", [1, 20, 100, 5_000])
def test_generated_bytes_have_the_size_that_was_asked_for(size: int) -> None:
    assert {len(value) for value in values_of(BenchPlan(job_file="j.py", record_bytes=size), Bytes())} == {size}


def test_generated_json_is_json_of_about_the_size() -> None:
    for value in values_of(BenchPlan(job_file="j.py", record_bytes=200), Json()):
        assert isinstance(json.loads(value)["n"], int)
        assert 195 <= len(value) <= 205


def test_generated_avro_fits_the_schema() -> None:
    serde = Avro(SCHEMA)
    values = values_of(BenchPlan(job_file="j.py"), serde)
    assert set(serde.deserialize(values[0])) == {"n", "s"}


def test_the_lines_of_a_sample_are_the_values(tmp_path: Path) -> None:
    sample = tmp_path / "sample.txt"
    sample.write_bytes(b"one\ntwo\n\n")
    assert values_of(BenchPlan(job_file="j.py", sample=sample), Bytes()) == [b"one", b"two"]


def test_a_sample_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"--sample .*nothing.txt can't be read"):
        values_of(BenchPlan(job_file="j.py", sample=tmp_path / "nothing.txt"), Bytes())


@pytest.mark.parametrize(
    ("wrong", "setting"),
    [({"records": 10}, "--records"), ({"keys": -1}, "--keys"), ({"rate": 0}, "--rate"), ({"partitions": 0}, "--part")],
)
def test_a_plan_that_makes_no_sense_names_the_option(wrong: dict[str, int], setting: str) -> None:
    with pytest.raises(ConfigurationError, match=setting):
        BenchPlan(job_file="j.py", **wrong)  # type: ignore[arg-type]
