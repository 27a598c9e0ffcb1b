"""A judge of a benchmark's output must find what is missing, double or wrong."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO

import orjson
import pytest
from fastavro import schemaless_writer
from peers.case import Case
from peers.workloads import WORKLOADS, Judge, key_of, schema

CASE = Case(records=40, keys=7)
Output = list[tuple[bytes, bytes]]


def right_output(job: str) -> Output:
    make = WORKLOADS[job].values(CASE)
    numbers = range(CASE.records)
    if job == "upper":
        return [(key_of(n, CASE.keys), make(n).upper()) for n in numbers]
    if job == "count":
        return [(b"k%d" % (n % 7), b"%d" % (n // 7 + 1)) for n in numbers]
    bodies = [{"n": n, "user": f"user-{n}", "amount": 0.0, "text": "", "half": n // 2} for n in numbers if n % 2 == 0]
    encode = orjson.dumps if job == "keep_even" else avro
    return [(key_of(int(str(body["n"])), CASE.keys), encode(body)) for body in bodies]


def avro(body: dict[str, object]) -> bytes:
    buffer = BytesIO()
    schemaless_writer(buffer, schema("halved"), body)
    return buffer.getvalue()


def judged(job: str, output: Output) -> str | None:
    judge: Judge = WORKLOADS[job].judge(replace(CASE, job=job))
    for key, value in output:
        judge.take(key, value)
    return judge.complaint()


@pytest.fixture(params=list(WORKLOADS))
def job(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_the_right_output_is_accepted(job: str) -> None:
    assert judged(job, right_output(job)) is None


def test_a_missing_record_is_found(job: str) -> None:
    assert judged(job, right_output(job)[:-1]) is not None


def test_a_double_record_is_found(job: str) -> None:
    assert judged(job, [*right_output(job), right_output(job)[0]]) is not None


def test_a_double_record_in_the_place_of_another_is_found(job: str) -> None:
    output = right_output(job)
    assert judged(job, [*output[:-1], output[0]]) is not None


def test_a_record_under_another_key_is_found(job: str) -> None:
    (_, value), *rest = right_output(job)
    assert judged(job, [(b"k-", value), *rest]) is not None


def test_a_wrong_value_is_found() -> None:
    (key, value), *rest = right_output("upper")
    assert judged("upper", [(key, value[:-1] + b"x"), *rest]) is not None


def test_counts_out_of_order_are_found() -> None:
    output = right_output("count")
    output[0], output[7] = output[7], output[0]
    assert judged("count", output) is not None


@pytest.mark.parametrize("size", [20, 100, 1_000, 100_000])
def test_a_text_value_has_the_size_that_was_asked_for(size: int) -> None:
    assert len(WORKLOADS["upper"].values(replace(CASE, value_bytes=size))(3)) == size


def test_two_jobs_on_the_same_records_share_their_input() -> None:
    assert replace(CASE, job="count").input_topic == replace(CASE, job="upper").input_topic
    assert replace(CASE, job="keep_even").input_topic != CASE.input_topic
