"""Upper on PyFlink. Arguments: job, servers, source, target, name, folder, width, checkpoint ms, mode, jars."""

from __future__ import annotations

import sys

from pyflink.common import Configuration, Row, Types, WatermarkStrategy
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors import DeliveryGuarantee
from pyflink.datastream.connectors.kafka import KafkaOffsetsInitializer, KafkaSink, KafkaSource
from pyflink.java_gateway import get_gateway

PAIR = Types.ROW([Types.PRIMITIVE_ARRAY(Types.BYTE()), Types.PRIMITIVE_ARRAY(Types.BYTE())])
READER = {
    "isolation.level": "read_committed",
    "max.poll.records": "10000",
    "fetch.min.bytes": "100000",
    "max.partition.fetch.bytes": "10000000",
}
WRITER = {
    "batch.size": "1000000",
    "linger.ms": "20",
    "buffer.memory": "134217728",
    "transaction.timeout.ms": "600000",
}


def main() -> None:
    """Run to the end of the input."""
    _, servers, source, target, name, folder, width, interval_ms, mode, jars = sys.argv[1:]
    settings = Configuration()
    for key, value in {
        "execution.checkpointing.dir": f"file://{folder}",
        "execution.checkpointing.interval": f"{interval_ms} ms",
        "pipeline.object-reuse": "true",
        "restart-strategy.type": "none",
        "python.execution-mode": mode,
        "python.executable": sys.executable,
        "python.client.executable": sys.executable,
        "python.fn-execution.bundle.size": "10000",
        "python.fn-execution.bundle.time": "500",
    }.items():
        settings.set_string(key, value)
    env = StreamExecutionEnvironment.get_execution_environment(settings)
    env.set_parallelism(int(width))
    env.add_jars(*(f"file://{jar}" for jar in jars.split(",")))
    ours = get_gateway().jvm.KeyedRecords
    reader = KafkaSource.builder().set_bootstrap_servers(servers).set_topics(source).set_group_id(name)
    reader.set_starting_offsets(KafkaOffsetsInitializer.earliest())
    reader.set_bounded(KafkaOffsetsInitializer.latest())
    for key, value in READER.items():
        reader.set_property(key, value)
    reader._j_builder.setDeserializer(ours.Reader())
    writer = KafkaSink.builder().set_bootstrap_servers(servers).set_transactional_id_prefix(name)
    writer.set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
    for key, value in WRITER.items():
        writer.set_property(key, value)
    writer._j_builder.setRecordSerializer(ours.Writer(target))
    rows = env.from_source(reader.build(), WatermarkStrategy.no_watermarks(), "in", PAIR)
    rows.map(lambda row: Row(row[0], bytes(row[1]).upper()), PAIR).sink_to(writer.build())
    env.execute(name)


if __name__ == "__main__":
    main()
