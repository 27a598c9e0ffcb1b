"""How many records a key has had in each ten seconds of event time, when that has passed."""

import os

from twopc import Job, KafkaSink, KafkaSource, Tumbling

job = Job(os.environ.get("BENCHMARK_NAME", "windowed-count"))
counted = (
    job.source(KafkaSource(os.environ.get("BENCHMARK_SOURCE", "in"))).window(Tumbling("10s")).count(name="windows")
)
counted.final().map(lambda window: b"%d %d" % (window.start, window.value)).sink(
    KafkaSink(os.environ.get("BENCHMARK_TARGET", "out"))
)
