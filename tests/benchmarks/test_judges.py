"""A judge of a benchmark's output must find what is missing, double or wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO

import orjson
import pytest
from fastavro import schemaless_writer
from peers.case import Case
from peers.operator_workloads import WINDOW_MS, DeadJudge, DeadLetters, name_of
from peers.workload import BEGIN_MS, Judge, key_of
from peers.workloads import WORKLOADS, schema

CASE = Case(records=40, keys=7)
SEVERAL_WINDOWS = 3 * WINDOW_MS
Output = list[tuple[bytes, bytes]]


def case_of(job: str) -> Case:
    return replace(CASE, job=job, records=SEVERAL_WINDOWS if job == "windowed_count" else CASE.records)


def right_output(job: str) -> Output:
    if job in OF_OPERATORS:
        return OF_OPERATORS[job]()
    make = WORKLOADS[job].values(CASE)
    numbers = range(CASE.records)
    if job in ("upper", "upper_batches"):
        return [(key_of(n, CASE.keys), make(n).upper()) for n in numbers]
    if job == "count":
        return [(b"k%d" % (n % 7), b"%d" % (n // 7 + 1)) for n in numbers]
    bodies = [{"n": n, "user": f"user-{n}", "amount": 0.0, "text": "", "half": n // 2} for n in numbers if n % 2 == 0]
    encode = orjson.dumps if job == "keep_even" else avro
    return [(key_of(int(str(body["n"])), CASE.keys), encode(body)) for body in bodies]


def rekeyed() -> Output:
    return [(b"%03d" % n, b"1") for n in range(CASE.records)]


def windowed() -> Output:
    closed = range(0, SEVERAL_WINDOWS - WINDOW_MS, WINDOW_MS)
    counts = Counter((key_of(n, CASE.keys), n // WINDOW_MS * WINDOW_MS) for n in range(SEVERAL_WINDOWS))
    keys = [key_of(n, CASE.keys) for n in range(CASE.keys)]
    return [(key, b"%d %d" % (BEGIN_MS + at, counts[key, at])) for at in closed for key in keys]


def joined() -> Output:
    return [(key_of(n, CASE.keys), b"%012d " % n + name_of(key_of(n, CASE.keys))) for n in range(CASE.records)]


def paired() -> Output:
    return [(key_of(n, CASE.keys), b"%012d %012d" % (n, n)) for n in range(CASE.records)]


def good() -> Output:
    body = {"text": "", "amount": 0.0}
    return [
        (key_of(n, CASE.keys), orjson.dumps(body | {"n": n, "half": n // 2, "user": f"user-{n}"}))
        for n in range(1, CASE.records)
    ]


OF_OPERATORS: dict[str, Callable[[], Output]] = {
    "rekeyed_count": rekeyed,
    "windowed_count": windowed,
    "table_join": joined,
    "interval_join": paired,
    "dead_letters": good,
}


def avro(body: dict[str, object]) -> bytes:
    buffer = BytesIO()
    schemaless_writer(buffer, schema("halved"), body)
    return buffer.getvalue()


def judged(job: str, output: Output) -> str | None:
    judge: Judge = WORKLOADS[job].judge(case_of(job))
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
    assert judged(job, [(b"999", value), *rest]) is not None


def test_a_wrong_value_is_found() -> None:
    (key, value), *rest = right_output("upper")
    assert judged("upper", [(key, value[:-1] + b"x"), *rest]) is not None


def test_counts_out_of_order_are_found() -> None:
    output = right_output("count")
    output[0], output[7] = output[7], output[0]
    assert judged("count", output) is not None


def test_a_dead_letter_that_is_missing_double_or_changed_is_found() -> None:
    case = replace(CASE, job="dead_letters", records=2_001)
    make = DeadLetters.values(case)
    right = [(key_of(n, case.keys), make(n)) for n in (0, 1_000, 2_000)]

    def complaint(output: Output) -> str | None:
        judge = DeadJudge(case)
        for key, value in output:
            judge.take(key, value)
        return judge.complaint()

    assert complaint(right) is None
    changed = [(right[0][0], right[0][1] + b"x"), *right[1:]]
    assert None not in (complaint(right[1:]), complaint([*right, right[0]]), complaint(changed))


def test_one_in_a_thousand_can_not_be_read() -> None:
    make = DeadLetters.values(CASE)
    assert [n for n in range(2_000) if not make(n).endswith(b"}")] == [0, 1_000]


@pytest.mark.parametrize("size", [20, 100, 1_000, 100_000])
def test_a_text_value_has_the_size_that_was_asked_for(size: int) -> None:
    assert len(WORKLOADS["upper"].values(replace(CASE, value_bytes=size))(3)) == size


def test_two_jobs_on_the_same_records_share_their_input() -> None:
    assert replace(CASE, job="count").input_topic == replace(CASE, job="upper").input_topic
    assert replace(CASE, job="keep_even").input_topic != CASE.input_topic
