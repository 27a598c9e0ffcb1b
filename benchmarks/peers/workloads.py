"""The jobs: what each reads, and how its output is judged, record by record.

Every input record has a number of its own, from 0, and a key that follows from it; so the output tells which records
are missing, which came twice, and which are wrong.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any, ClassVar

import orjson
from fastavro import parse_schema, schemaless_reader, schemaless_writer

from peers.case import Case

SCHEMAS = Path(__file__).parents[1] / "jobs"
DIGITS = 12
_FILLER = b" the quick brown fox jumps over the lazy dog, and then it jumps back over it again, and again,"


def key_of(number: int, keys: int) -> bytes:
    """Return the key of an input record: in no order that a store would like."""
    return b"k%d" % (number * 7_919 % keys)


def schema(name: str) -> Any:
    """Return one of the Avro schemas of the jobs."""
    return parse_schema(json.loads((SCHEMAS / f"{name}.avsc").read_text()))


class Judge(ABC):
    """Takes the output, partition by partition in order; `complaint` says what is wrong with it, if anything is."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.taken = 0
        self.strange = 0
        self._seen = bytearray(case.records)

    @abstractmethod
    def take(self, key: bytes | None, value: bytes | None) -> None: ...

    def complaint(self) -> str | None:
        """Say what is wrong, or None."""
        expected = self.expected()
        once = self._seen.count(1)
        if self.taken == expected == once and not self.strange:
            return None
        return f"{self.taken} records instead of {expected}, {once} of them once, {self.strange} not as they should be"

    def expected(self) -> int:
        return self.case.records

    def note(self, number: int, right: bool) -> None:
        """Count one record that says it is this one."""
        self.taken += 1
        if 0 <= number < self.case.records and self._seen[number] < 255:
            self._seen[number] += 1
        if not right:
            self.strange += 1


class Workload:
    """One job. `form` names the records that it reads; jobs with the same form read the same topic."""

    form: ClassVar[str]
    judge: ClassVar[type[Judge]]

    @staticmethod
    def values(case: Case) -> Callable[[int], bytes]:
        """Return what makes the value of an input record from its number."""
        raise NotImplementedError


def filled(size: int) -> bytes:
    """Return the constant part of a text value of this size."""
    return (_FILLER * (size // len(_FILLER) + 1))[: max(0, size - DIGITS)]


class Text(Workload):
    """Values of text: the record's number, and a filler."""

    form = "text"

    @staticmethod
    def values(case: Case) -> Callable[[int], bytes]:
        rest = filled(case.value_bytes)
        return lambda number: b"%012d%b" % (number, rest)


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
    "count": Count,
    "keep_even": KeepEven,
    "keep_even_avro": KeepEvenAvro,
}
