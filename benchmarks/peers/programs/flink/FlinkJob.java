import java.nio.charset.StandardCharsets;
import java.util.Properties;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.connector.kafka.source.reader.deserializer.KafkaRecordDeserializationSchema;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;

/** Arguments: job, servers, source, target, name, folder, parallelism, milliseconds between checkpoints. Ends. */
public class FlinkJob {
    static final TypeInformation<Tuple2<byte[], byte[]>> PAIR = Types.TUPLE(
        Types.PRIMITIVE_ARRAY(Types.BYTE), Types.PRIMITIVE_ARRAY(Types.BYTE));

    static class Reader implements KafkaRecordDeserializationSchema<Tuple2<byte[], byte[]>> {
        @Override
        public void deserialize(ConsumerRecord<byte[], byte[]> record, Collector<Tuple2<byte[], byte[]>> out) {
            out.collect(Tuple2.of(record.key(), record.value()));
        }

        @Override
        public TypeInformation<Tuple2<byte[], byte[]>> getProducedType() {
            return PAIR;
        }
    }

    static class Writer implements KafkaRecordSerializationSchema<Tuple2<byte[], byte[]>> {
        private final String topic;

        Writer(String topic) {
            this.topic = topic;
        }

        @Override
        public ProducerRecord<byte[], byte[]> serialize(
                Tuple2<byte[], byte[]> pair, KafkaSinkContext context, Long timestamp) {
            return new ProducerRecord<>(topic, null, timestamp, pair.f0, pair.f1);
        }
    }

    /** The running count of each key. */
    static class Counter extends KeyedProcessFunction<String, Tuple2<byte[], byte[]>, Tuple2<byte[], byte[]>> {
        private transient ValueState<Long> count;

        @Override
        public void open(OpenContext context) {
            count = getRuntimeContext().getState(new ValueStateDescriptor<>("count", Types.LONG));
        }

        @Override
        public void processElement(
                Tuple2<byte[], byte[]> pair, Context context, Collector<Tuple2<byte[], byte[]>> out) throws Exception {
            Long before = count.value();
            long now = before == null ? 1 : before + 1;
            count.update(now);
            out.collect(Tuple2.of(pair.f0, Long.toString(now).getBytes(StandardCharsets.US_ASCII)));
        }
    }

    public static void main(String[] args) throws Exception {
        boolean counts = args[0].equals("count");
        Configuration settings = new Configuration();
        settings.setString("state.backend.type", counts ? "rocksdb" : "hashmap");
        settings.setString("execution.checkpointing.incremental", "true");
        settings.setString("execution.checkpointing.storage", "filesystem");
        settings.setString("execution.checkpointing.dir", "file://" + args[5]);
        settings.setString("execution.checkpointing.interval", args[7] + " ms");
        settings.setString("pipeline.object-reuse", "true");
        settings.setString("restart-strategy.type", "none");
        StreamExecutionEnvironment env =
            StreamExecutionEnvironment.createLocalEnvironment(Integer.parseInt(args[6]), settings);
        DataStream<Tuple2<byte[], byte[]>> input =
            env.fromSource(source(args), WatermarkStrategy.noWatermarks(), "in", PAIR);
        DataStream<Tuple2<byte[], byte[]>> output = counts
            ? input.keyBy(pair -> new String(pair.f0, StandardCharsets.ISO_8859_1), Types.STRING).process(new Counter(), PAIR)
            : input.map(pair -> Tuple2.of(pair.f0, upper(pair.f1)), PAIR);
        output.sinkTo(sink(args));
        env.execute(args[4]);
    }

    static byte[] upper(byte[] value) {
        return new String(value, StandardCharsets.ISO_8859_1).toUpperCase().getBytes(StandardCharsets.ISO_8859_1);
    }

    static KafkaSource<Tuple2<byte[], byte[]>> source(String[] args) {
        return KafkaSource.<Tuple2<byte[], byte[]>>builder()
            .setBootstrapServers(args[1])
            .setTopics(args[2])
            .setGroupId(args[4])
            .setStartingOffsets(OffsetsInitializer.earliest())
            .setBounded(OffsetsInitializer.latest())
            .setDeserializer(new Reader())
            .setProperty("isolation.level", "read_committed")
            .setProperty("max.poll.records", "10000")
            .setProperty("fetch.min.bytes", "100000")
            .setProperty("max.partition.fetch.bytes", "10000000")
            .build();
    }

    static KafkaSink<Tuple2<byte[], byte[]>> sink(String[] args) {
        Properties settings = new Properties();
        settings.put("batch.size", "1000000");
        settings.put("linger.ms", "20");
        settings.put("buffer.memory", "134217728");
        settings.put("transaction.timeout.ms", "600000");
        return KafkaSink.<Tuple2<byte[], byte[]>>builder()
            .setBootstrapServers(args[1])
            .setRecordSerializer(new Writer(args[3]))
            .setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE)
            .setTransactionalIdPrefix(args[4])
            .setKafkaProducerConfig(settings)
            .build();
    }
}
