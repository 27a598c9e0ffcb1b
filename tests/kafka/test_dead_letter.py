"""A dead letter, as it is made of a record of any size, and the topic that takes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twopc import ConfigurationError, DeadLetter, Job, KafkaSink, KafkaSource, NewTopic
from twopc.kafka.letter import RESERVED_BYTES, SHORTENED, TIMESTAMP, Letter
from twopc.kafka.output.record_taker import RecordTaker
from twopc.kafka.topics.dead_letter_topic import DeadLetterTopic
from twopc.kafka.topics.topic_limits import TopicLimits
from twopc.record import ErrorStage, RecordError
from twopc.testing.rows import InputRow
from twopc.verify.found_topics import FoundTopics

TEXTS = {"topic": b"in", "exception.message": b"m" * 300, "exception.stacktrace": b"s" * 500}
SMALL = KafkaSink("out", properties={"message.max.bytes": 5_000})


def letter(
    row: InputRow, cause: BaseException | None = None, sink: KafkaSink = SMALL
) -> tuple[Any, Any, dict[str, Any]]:
    """Return key, value and headers of a row's dead letter."""
    error = RecordError(row, ErrorStage.TRANSFORMATION, "map(f)", cause or ValueError("no"))
    batch = DeadLetter("dead").dead_letter("job", error, sink)
    return batch.keys[0], batch.values[0], dict(batch.headers[0] or ())


@given(
    key=st.none() | st.integers(0, 3_000).map(bytes),
    value=st.none() | st.integers(0, 3_000).map(bytes),
    headers=st.lists(st.tuples(st.sampled_from(["a", "name" * 20]), st.none() | st.integers(0, 900).map(bytes))),
    largest=st.integers(RESERVED_BYTES + 200, 6_000),
)
def test_a_letter_of_any_size_fits_and_says_what_was_shortened(
    key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes | None]], largest: int
) -> None:
    whole = Letter(key, value, tuple(headers), TEXTS)
    fitted = whole.fitted(largest)
    assert fitted.size + len(SHORTENED) + len(", ".join(fitted.shortened)) <= largest - 100
    assert (fitted.shortened == ()) == (fitted == whole)
    assert bool(fitted.shortened) == (whole.size > largest - RESERVED_BYTES)
    assert (fitted.key is None, fitted.value is None) == (key is None, value is None)
    assert fitted.texts["topic"] == b"in"


def test_the_stack_trace_goes_before_anything_of_the_record() -> None:
    row = InputRow(b"v" * 3_000, b"k", headers_=[("trace", b"7")])
    key, value, headers = letter(row, ValueError("x" * 4_000))
    assert (key, value, headers["trace"]) == (b"k", b"v" * 3_000, b"7")
    said = headers[SHORTENED].decode()
    assert said.startswith("exception.stacktrace of ")
    assert said.endswith("exception.message of 4000 bytes")


def test_a_value_that_is_too_long_keeps_its_beginning() -> None:
    key, value, headers = letter(InputRow(b"begin" + bytes(9_000), b"k"))
    assert (key, value[:5]) == (b"k", b"begin")
    assert 2_000 < len(value) < 4_000
    assert headers[SHORTENED].endswith(b"value of 9005 bytes")


def test_one_that_fits_is_whole() -> None:
    _, value, headers = letter(InputRow(bytes(9_000), b"k"), sink=KafkaSink("out"))
    assert (len(value), SHORTENED in headers) == (9_000, False)


def test_a_header_that_no_client_writes_is_left_out_and_that_is_said() -> None:
    _, _, headers = letter(InputRow(b"v", headers_=[("a\0b", b"1"), ("ok", b"2")]))
    assert (headers["ok"], "a\0b" in headers) == (b"2", False)
    assert headers[SHORTENED] == b"1 headers with illegal names"


class Speechless(Exception):
    """An exception that can't say what it is."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


def test_an_exception_that_fails_to_say_what_it_is_makes_a_dead_letter_too() -> None:
    _, _, headers = letter(InputRow(b"v"), Speechless())
    assert headers["__connect.errors.exception.message"] == b"(its message can't be read: RuntimeError)"


FOUR = NewTopic(partitions=4)


def dead_letters(policy: DeadLetter, **options: Any) -> KafkaSink:
    """Return the sink of dead letters of a job whose own sink has these options."""
    job = Job("job", on_error=policy)
    job.source(KafkaSource("in")).sink(KafkaSink("out", **options))
    sink = job.definition().sinks["dead-letters-dead"]
    assert isinstance(sink, KafkaSink)
    return sink


def test_its_topic_is_made_as_the_policy_says_and_never_as_the_jobs_own_sink_does() -> None:
    own = NewTopic(partitions=3, config={"cleanup.policy": "compact"})
    assert dead_letters(DeadLetter("dead"), create=own).new_topics == {"dead": DeadLetterTopic(None, 1_000_000)}
    assert dead_letters(DeadLetter("dead", create=FOUR), create=own).new_topics == {
        "dead": DeadLetterTopic(FOUR, 1_000_000)
    }


def test_it_is_written_by_the_producer_of_the_jobs_own_sink() -> None:
    options = {"bootstrap_servers": "a:1", "transactional_id_prefix": "p", "properties": {"message.max.bytes": "2000"}}
    sink = dead_letters(DeadLetter("dead"), partitioner="source", **options)
    assert (sink.bootstrap_servers, sink.transactional_id_prefix) == ("a:1", "p")
    assert sink.new_topics == {"dead": DeadLetterTopic(None, 2_000)}
    assert sink.partitioner is None


def test_what_is_no_new_topic_is_refused() -> None:
    create: Any = {"partitions": 4}
    with pytest.raises(ConfigurationError, match="create of DeadLetter must be a NewTopic"):
        DeadLetter("dead", create=create)


def test_a_topic_that_would_not_take_every_dead_letter_is_refused() -> None:
    topic = DeadLetterTopic(None, 1_000_000)
    with pytest.raises(ConfigurationError, match=r"'dead' of dead letters has cleanup\.policy=compact,delete"):
        topic.check("dead", "compact,delete", "1048588")
    with pytest.raises(ConfigurationError, match=r"has max\.message\.bytes=999999, and the job's producer"):
        topic.check("dead", "delete", "999999")
    topic.check("dead", "delete", "1000000")
    topic.check("dead", None, None)


class There:
    """A topic that is there, with these settings; notes what is made."""

    def __init__(self, **settings: str) -> None:
        self.settings = settings
        self.made: list[tuple[str, int]] = []

    def ensure_topic(self, name: str, partitions: int, **_: Any) -> bool:
        self.made.append((name, partitions))
        return False

    def topics(self, names: list[str]) -> dict[str, Any]:
        return dict.fromkeys(names)

    def settings_of(self, name: str, names: Sequence[str]) -> dict[str, str | None]:
        return {each: self.settings.get(each.replace(".", "_")) for each in names}


def test_a_topic_that_is_there_is_looked_at_whether_the_policy_makes_it_or_not() -> None:
    client: Any = There(cleanup_policy="compact")
    settings: Any = None
    for create in (None, FOUR):
        with pytest.raises(ConfigurationError, match="deletes all but the last dead letter of a key"):
            DeadLetterTopic(create, 1).ensure("dead", client, settings)
    assert client.made == [("dead", 4)]


class Letters(RecordTaker):
    def __init__(self) -> None:
        super().__init__()
        self.taken: list[tuple[int, dict[str, bytes | None]]] = []

    def take(self, topic: str, key: Any, value: Any, headers: Any, partition: int, timestamp: int) -> None:
        self.taken.append((timestamp, dict(headers)))


def test_one_with_a_time_that_its_topic_refuses_has_it_in_a_header() -> None:
    sink = DeadLetter("dead").dead_letter_sink([SMALL])
    output = sink.output(FoundTopics({}, {"dead": TopicLimits(after_ms=3_600_000)}))
    letters, far = Letters(), 4_000_000_000_000
    for stamp in (1_700_000_000_000, far):
        error = RecordError(InputRow(b"v", b"k", timestamp_=stamp), ErrorStage.TRANSFORMATION, "map(f)", ValueError())
        assert output.write(letters, DeadLetter("dead").dead_letter("job", error, sink)) == 1
    assert [(stamp, headers.get(TIMESTAMP)) for stamp, headers in letters.taken] == [
        (1_700_000_000_000, None),
        (-1, b"4000000000000"),
    ]


def test_two_policies_that_make_one_topic_in_two_ways_are_refused() -> None:
    job = Job("job", on_error=DeadLetter("dead", create=NewTopic(partitions=4)))
    job.source(KafkaSource("a")).sink(KafkaSink("out"))
    other = job.source(KafkaSource("b"), on_error=DeadLetter("dead", create=NewTopic(partitions=4), most=0.1))
    other.sink(KafkaSink("out"))
    job.definition()
    job.source(KafkaSource("c"), on_error=DeadLetter("dead")).sink(KafkaSink("out"))
    with pytest.raises(ConfigurationError, match="differ in how it is made"):
        job.definition()
