"""The jobs that are compared, by name, and the first of them: each value by itself, and a running count."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import orjson
from fastavro import parse_schema, schemaless_reader, schemaless_writer

from peers.case import Case
from peers.operator_workloads import OPERATOR_WORKLOADS
from peers.workload import DIGITS, Judge, Text, Workload, filled, key_of

SCHEMAS = Path(__file__).parents[1] / "jobs"


def schema(name: str) -> Any:
    """Return one of the Avro schemas of the jobs."""
    return parse_schema(json.loads((SCHEMAS / f"{name}.avsc").read_text()))


class UpperJudge(Judge):
    """Expects each value in capitals."""

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._rest = filled(case.value_bytes).upper()

    def take(self, key: bytes | None, value: bytes | None) -> None:
        assert value is not None
        number = int(value[:DIGITS])
        self.note(number, value[DIGITS:] == self._rest and key == key_of(number, self.case.keys))


class Upper(Text):
    """Upper-case the value; keep the key."""

    judge = UpperJudge


class CountJudge(Judge):
    """A key's counts must come in order, none missing, none twice."""

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._counts: dict[bytes | None, int] = {}

    def take(self, key: bytes | None, value: bytes | None) -> None:
        assert value is not None
        count = self._counts.get(key, 0) + 1
        self._counts[key] = count
        self.note(self.taken, int(value) == count)


class Count(Text):
    """For every record, how many its key has had."""

    judge = CountJudge


class EvenJudge(Judge):
    """Expects the even numbers, as JSON."""

    def expected(self) -> int:
        return (self.case.records + 1) // 2

    def read(self, value: bytes) -> Any:
        return orjson.loads(value)

    def take(self, key: bytes | None, value: bytes | None) -> None:
        assert value is not None
        body = self.read(value)
        number = body["n"]
        right = number % 2 == 0 and body["half"] == number // 2 and body["user"] == f"user-{number % 97}"
        self.note(number, right and key == key_of(number, self.case.keys))


def _body(number: int) -> dict[str, Any]:
    return {"n": number, "user": f"user-{number % 97}", "amount": number % 10_000 / 100}


class KeepEven(Workload):
    """JSON: keep what has an even `n`, and add a field."""

    form = "json"
    judge = EvenJudge

    @staticmethod
    def values(case: Case) -> Callable[[int], bytes]:
        text = filled(max(DIGITS + 10, case.value_bytes - 50)).decode()
        return lambda number: orjson.dumps(_body(number) | {"text": text})


class EvenAvroJudge(EvenJudge):
    """Expects the even numbers, as Avro."""

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._schema = schema("halved")

    def read(self, value: bytes) -> Any:
        return schemaless_reader(BytesIO(value), self._schema, None)


class KeepEvenAvro(Workload):
    """The same with Avro."""

    form = "avro"
    judge = EvenAvroJudge

    @staticmethod
    def values(case: Case) -> Callable[[int], bytes]:
        text, written = filled(max(DIGITS + 10, case.value_bytes - 20)).decode(), schema("numbered")

        def make(number: int) -> bytes:
            buffer = BytesIO()
            schemaless_writer(buffer, written, _body(number) | {"text": text})
            return buffer.getvalue()

        return make


WORKLOADS: dict[str, type[Workload]] = {
    "upper": Upper,
    "upper_batches": Upper,
    "count": Count,
    "keep_even": KeepEven,
    "keep_even_avro": KeepEvenAvro,
    **OPERATOR_WORKLOADS,
}
