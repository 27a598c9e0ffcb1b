"""The job that is benchmarked where no other is named: bytes, upper-cased, one in and one out."""

from twopc import Job, KafkaSink, KafkaSource

job = Job("upper")
job.source(KafkaSource("in")).map(bytes.upper).sink(KafkaSink("out"))
