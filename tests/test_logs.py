"""What the processes of a job say, as lines of text or of JSON."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Iterator

import pytest

from twopc.logs import LineStream, configure_logging, output_of_subtask, pass_on, prints_on_stderr


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level


def test_a_line_of_text_has_a_time_the_level_and_the_name_of_the_logger(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("info", "text")
    logging.getLogger("my.own").warning("low on %s", "ink")
    date, clock, rest = capsys.readouterr().err.split(" ", 2)
    assert (len(date), clock[2], rest) == (10, ":", "WARNING my.own: low on ink\n")


def test_the_line_of_a_worker_says_whose_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("info", "text", subtask=3)
    logging.getLogger("my.own").info("hello")
    assert capsys.readouterr().err.endswith("INFO my.own (subtask 3): hello\n")


def test_what_is_below_the_level_is_not_said(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("error", "text")
    logging.getLogger("my.own").warning("low on ink")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("level", "said"), [("info", False), ("debug", True)])
def test_a_traceback_of_py4j_about_a_jvm_that_is_gone_is_for_those_who_debug_it(
    level: str, said: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logging(level, "text")
    record = logging.LogRecord("root", logging.ERROR, "/lib/py4j/java_gateway.py", 1, "no answer", None, None)
    logging.getLogger().handle(record)
    assert ("no answer" in capsys.readouterr().err) is said


def test_configuring_again_replaces_what_was_configured(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("info", "text")
    configure_logging("info", "json", subtask=1)
    logging.getLogger("my.own").info("hello")
    (line,) = capsys.readouterr().err.splitlines()
    assert json.loads(line).items() >= {"level": "INFO", "logger": "my.own", "subtask": 1, "message": "hello"}.items()


def test_a_traceback_stays_in_its_line_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("info", "json")
    try:
        raise ValueError("bad")
    except ValueError:
        logging.getLogger("my.own").exception("failed")
    (line,) = capsys.readouterr().err.splitlines()
    assert "ValueError: bad" in json.loads(line)["traceback"]


def test_what_is_printed_goes_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    with prints_on_stderr("text"):
        print("hello", 1)  # noqa: T201 - it is what is tested
    assert capsys.readouterr() == ("", "hello 1\n")


def test_what_is_printed_is_json_where_everything_is(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("error", "json")
    with prints_on_stderr("json"):
        print("hello", 1)  # noqa: T201 - it is what is tested
        print('{"mine": 1}', file=sys.stderr)  # noqa: T201 - it is what is tested
        logging.getLogger("my.own").error("bad")
    written = capsys.readouterr()
    assert written.out == ""
    lines = [json.loads(line) for line in written.err.splitlines()]
    assert [(line["logger"], line["message"]) for line in lines] == [
        ("stdout", "hello 1"),
        ("stderr", '{"mine": 1}'),
        ("my.own", "bad"),
    ]


def test_a_record_of_another_process_is_passed_on_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    record = '{"time": "2026-11-22T15:30:01.123+00:00", "level": "INFO", "logger": "my.own", "message": "hello"}'
    reading, writing = os.pipe()
    with prints_on_stderr("json"):
        with os.fdopen(writing, "w") as pipe:
            pipe.write(f"{record}\nnoise\nprinted")
        pass_on(os.fdopen(reading), without=("noise",)).join(60)
    first, second = capsys.readouterr().err.splitlines()
    assert (first, json.loads(second)["message"]) == (record, "printed")


def test_a_pipe_is_emptied_though_nobody_listens_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that prints would be held up for ever otherwise."""

    def gone(_line: str) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(sys, "stderr", LineStream(gone))
    reading, writing = os.pipe()
    thread = pass_on(os.fdopen(reading))
    with os.fdopen(writing, "w") as pipe:
        pipe.writelines("word\n" for _ in range(100_000))
    thread.join(60)
    assert not thread.is_alive()


def test_a_process_that_was_a_subtask_s_logs_afterwards_as_before(capsys: pytest.CaptureFixture[str]) -> None:
    root = logging.getLogger()
    before = root.handlers[:], root.level
    with output_of_subtask(1, "debug", "text"):
        logging.getLogger("my.own").debug("hello")
    assert (root.handlers[:], root.level) == before
    assert capsys.readouterr().err.endswith("DEBUG my.own (subtask 1): hello\n")


def test_a_stream_of_lines_hands_over_whole_lines_and_the_rest_at_its_end() -> None:
    lines: list[str] = []
    stream = LineStream(lines.append)
    stream.write("a")
    stream.write("b\nc\nd")
    assert lines == ["ab", "c"]
    stream.close()
    assert lines == ["ab", "c", "d"]
