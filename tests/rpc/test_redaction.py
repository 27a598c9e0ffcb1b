"""What text may leave a process."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twopc.rpc.redaction import TEXT_MAX, redact


@pytest.mark.parametrize(
    ("text", "as_told"),
    [
        (
            "[Errno 28] No space left on device: '/mnt/c/late/chk-7/x.sst'",
            "[Errno 28] No space left on device: '.../x.sst'",
        ),
        ('File "/opt/jobs/upper.py", line 3', 'File ".../upper.py", line 3'),
        ("sasl.password=hunter2 was refused", "sasl.password=*** was refused"),
        ("{'sasl.password': 'hunter 2', 'acks': 'all'}", "{'sasl.password': ***, 'acks': 'all'}"),
        ('ssl.key.password = "a b"', "ssl.key.password = ***"),
        ("one line\n  and another", "one line and another"),
    ],
)
def test_places_of_the_machine_and_secrets_are_left_out(text: str, as_told: str) -> None:
    assert redact(text) == as_told


@pytest.mark.parametrize(
    "text",
    [
        "flights[3]@17: invalid literal for int() with base 10: 'x'",
        "late/ledger/000000000003.json is damaged: its digest is not that of its body",
        "chk-7/subtask-0/000012.sst is missing",
        "the coordinator refused the token: a bearer token is asked for",
        "12 records/s, and/or less; set transaction.max.timeout.ms",
        "127.0.0.1:9092/1 can't be reached",
    ],
)
def test_what_a_person_needs_is_kept(text: str) -> None:
    assert redact(text) == text


def test_a_text_without_end_takes_no_time_without_end() -> None:
    for endless in ("x" * 100_000, "password" * 10_000, "/a" * 50_000, "token='" * 10_000, "token=" + " " * 100_000):
        assert len(redact(endless)) <= TEXT_MAX


@given(st.text(max_size=5 * TEXT_MAX))
def test_text_is_bounded_and_on_one_line(text: str) -> None:
    told = redact(text)
    assert len(told) <= TEXT_MAX
    assert "\n" not in told
    assert redact(told) == told
