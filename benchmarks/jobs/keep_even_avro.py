"""`examples/keep_even.py` in Avro: keep the records whose field `n` is even, and add a field."""

from pathlib import Path

from twopc import Avro, Job, KafkaSink, KafkaSource

HERE = Path(__file__).parent

job = Job("keep-even-avro")
(
    job.source(KafkaSource("in", value=Avro(HERE / "numbered.avsc")))
    .filter(lambda value: value["n"] % 2 == 0)
    .map(lambda value: value | {"half": value["n"] // 2})
    .sink(KafkaSink("out", value=Avro(HERE / "halved.avsc")))
)
