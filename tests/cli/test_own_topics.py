"""The topics of a job's own, as `twopc jobs show` lists them."""

from __future__ import annotations

from twopc import Job, KafkaSink, KafkaSource
from twopc.cli.own_topics import own_topics, own_topics_text
from twopc.testing import MemoryRun


def test_the_topics_of_every_key_by_are_listed_and_no_others() -> None:
    job = Job("flights")
    stream = job.source(KafkaSource("in")).key_by(len, name="by-length")
    stream.key_by(lambda value: value[:1], name="by-letter").sink(KafkaSink("out"))
    with MemoryRun(job) as run:
        run.send_raw("in", b"value")
        run.checkpoint()
        found = own_topics(run._store, "flights")
    assert found == ["flights-by-length-repartition", "flights-by-letter-repartition"]
    assert "twopc topics delete flights-by-length-repartition flights-by-letter-repartition" in own_topics_text(found)


def test_a_job_without_any_has_none_though_an_input_is_named_like_one() -> None:
    job = Job("flights")
    job.source(KafkaSource("flights-by-length-repartition"), name="length-source").sink(KafkaSink("out"))
    with MemoryRun(job) as run:
        run.checkpoint()
        assert own_topics(run._store, "flights") == []
