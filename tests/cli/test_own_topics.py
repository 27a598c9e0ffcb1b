"""The topics of a job's own, as `twopc jobs show` lists them."""

from __future__ import annotations

from twopc import Job, KafkaSink, KafkaSource
from twopc.cli.own_topics import own_topics
from twopc.testing import MemoryRun


def test_the_topics_of_every_key_by_are_listed_with_what_they_hold_and_for_which_checkpoint() -> None:
    job = Job("flights")
    stream = job.source(KafkaSource("in")).key_by(len, name="by-length")
    stream.key_by(lambda value: value[:1], name="by-letter").sink(KafkaSink("out"))
    with MemoryRun(job, partitions=2) as run:
        run.checkpoint()
        for text in (b"one", b"three", b"seven"):
            run.send_raw("in", text, partition=0)
        run.checkpoint()
        run.checkpoint()
        first, second = own_topics(run._store, "flights")
    assert (first.name, first.partitions) == ("flights-by-length-repartition", 2)
    assert (second.name, second.checkpoint) == ("flights-by-letter-repartition", first.checkpoint)
    assert (first.offsets, first.checkpoint, first.label) == (3, 2, "")


def test_a_job_without_any_has_none_though_an_input_is_named_like_one() -> None:
    job = Job("flights")
    job.source(KafkaSource("flights-by-length-repartition"), name="length-source").sink(KafkaSink("out"))
    with MemoryRun(job) as run:
        run.checkpoint()
        assert own_topics(run._store, "flights") == []
