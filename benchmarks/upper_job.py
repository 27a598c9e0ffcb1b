"""The job of the throughput benchmark: `examples/upper.py` with topics from the environment."""

import os

from twopc import Job, KafkaSink, KafkaSource

job = Job(os.environ["BENCH_JOB"])
job.source(KafkaSource(os.environ["BENCH_SOURCE"])).map(bytes.upper).sink(KafkaSink(os.environ["BENCH_TARGET"]))
