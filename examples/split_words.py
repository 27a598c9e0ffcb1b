"""One record in, many out, and a record-level view: words of the value, keyed by word, to a topic by first letter."""

from twopc import Job, KafkaSink, KafkaSource, Record


def words(record: Record) -> list[Record]:
    return [record.replace(key=word, value=b"1") for word in record.value.split()]


def topic_of(record: Record) -> str:
    return "words-a-m" if record.key[:1].lower() <= b"m" else "words-n-z"


job = Job("split-words")
job.source(KafkaSource(["in", "in-2"])).flat_map_records(words).sink(KafkaSink(topic_of))
