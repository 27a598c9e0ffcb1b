import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Properties;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
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
import org.apache.flink.streaming.api.datastream.KeyedStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.ProcessFunction;
import org.apache.flink.streaming.api.functions.co.KeyedCoProcessFunction;
import org.apache.flink.streaming.api.functions.co.ProcessJoinFunction;
import org.apache.flink.streaming.api.functions.windowing.ProcessWindowFunction;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.util.Collector;
import org.apache.flink.util.OutputTag;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;

/**
 * Arguments: job, servers, source, target, name, folder, parallelism, milliseconds between checkpoints, a second topic
 * to read, the topic of dead letters. Ends.
 */
public class FlinkJob {
    static final ObjectMapper JSON = new ObjectMapper();
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
            out.collect(Tuple2.of(ascii(context.getCurrentKey()), ascii(Long.toString(now))));
        }
    }

    static class Total implements AggregateFunction<Tuple2<byte[], byte[]>, Long, Long> {
        @Override
        public Long createAccumulator() {
            return 0L;
        }

        @Override
        public Long add(Tuple2<byte[], byte[]> pair, Long total) {
            return total + 1;
        }

        @Override
        public Long getResult(Long total) {
            return total;
        }

        @Override
        public Long merge(Long one, Long other) {
            return one + other;
        }
    }

    /** The start of a window, and its total. */
    static class Told extends ProcessWindowFunction<Long, Tuple2<byte[], byte[]>, String, TimeWindow> {
        @Override
        public void process(String key, Context context, Iterable<Long> total, Collector<Tuple2<byte[], byte[]>> out) {
            String value = context.window().getStart() + " " + total.iterator().next();
            out.collect(Tuple2.of(ascii(key), ascii(value)));
        }
    }

    /** Which of two topics is read first nothing fixes: what comes before its name waits for it. */
    static class Named
            extends KeyedCoProcessFunction<String, Tuple2<byte[], byte[]>, Tuple2<byte[], byte[]>, Tuple2<byte[], byte[]>> {
        private transient ValueState<byte[]> name;
        private transient ListState<byte[]> waiting;

        @Override
        public void open(OpenContext context) {
            TypeInformation<byte[]> bytes = TypeInformation.of(byte[].class);
            name = getRuntimeContext().getState(new ValueStateDescriptor<>("name", bytes));
            waiting = getRuntimeContext().getListState(new ListStateDescriptor<>("waiting", bytes));
        }

        @Override
        public void processElement1(
                Tuple2<byte[], byte[]> pair, Context context, Collector<Tuple2<byte[], byte[]>> out) throws Exception {
            byte[] known = name.value();
            if (known == null) {
                waiting.add(pair.f1);
            } else {
                out.collect(Tuple2.of(pair.f0, named(pair.f1, known)));
            }
        }

        @Override
        public void processElement2(
                Tuple2<byte[], byte[]> pair, Context context, Collector<Tuple2<byte[], byte[]>> out) throws Exception {
            name.update(pair.f1);
            for (byte[] value : waiting.get()) {
                out.collect(Tuple2.of(pair.f0, named(value, pair.f1)));
            }
            waiting.clear();
        }

        static byte[] named(byte[] value, byte[] name) {
            return ascii(new String(value, 0, 12, StandardCharsets.US_ASCII) + " " + new String(name, StandardCharsets.US_ASCII));
        }
    }

    static class Paired
            extends ProcessJoinFunction<Tuple2<byte[], byte[]>, Tuple2<byte[], byte[]>, Tuple2<byte[], byte[]>> {
        @Override
        public void processElement(
                Tuple2<byte[], byte[]> pair, Tuple2<byte[], byte[]> other, Context context,
                Collector<Tuple2<byte[], byte[]>> out) {
            out.collect(Tuple2.of(pair.f0, Named.named(pair.f1, other.f1)));
        }
    }

    /** JSON with a field more; what can't be read goes aside. */
    static class Halved extends ProcessFunction<Tuple2<byte[], byte[]>, Tuple2<byte[], byte[]>> {
        static final OutputTag<Tuple2<byte[], byte[]>> DEAD = new OutputTag<>("dead", PAIR);

        @Override
        public void processElement(
                Tuple2<byte[], byte[]> pair, Context context, Collector<Tuple2<byte[], byte[]>> out) {
            try {
                JsonNode body = JSON.readTree(pair.f1);
                ((ObjectNode) body).put("half", body.get("n").asLong() / 2);
                out.collect(Tuple2.of(pair.f0, JSON.writeValueAsBytes(body)));
            } catch (IOException error) {
                context.output(DEAD, pair);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        boolean keyed = !args[0].equals("upper") && !args[0].equals("dead_letters");
        Configuration settings = new Configuration();
        settings.setString("state.backend.type", keyed ? "rocksdb" : "hashmap");
        settings.setString("execution.checkpointing.incremental", "true");
        settings.setString("execution.checkpointing.storage", "filesystem");
        settings.setString("execution.checkpointing.dir", "file://" + args[5]);
        settings.setString("execution.checkpointing.interval", args[7] + " ms");
        settings.setString("pipeline.object-reuse", "true");
        settings.setString("restart-strategy.type", "none");
        StreamExecutionEnvironment env =
            StreamExecutionEnvironment.createLocalEnvironment(Integer.parseInt(args[6]), settings);
        DataStream<Tuple2<byte[], byte[]>> input = env.fromSource(source(args, args[2]), time(args), "in", PAIR);
        output(args, env, input).sinkTo(sink(args, args[3], args[4]));
        env.execute(args[4]);
    }

    static WatermarkStrategy<Tuple2<byte[], byte[]>> time(String[] args) {
        boolean counts = args[0].equals("windowed_count") || args[0].equals("interval_join");
        return counts ? WatermarkStrategy.forMonotonousTimestamps() : WatermarkStrategy.noWatermarks();
    }

    static DataStream<Tuple2<byte[], byte[]>> output(
            String[] args, StreamExecutionEnvironment env, DataStream<Tuple2<byte[], byte[]>> input) {
        switch (args[0]) {
            case "count":
                return byKey(input).process(new Counter(), PAIR);
            case "rekeyed_count":
                return input
                    .keyBy(pair -> new String(pair.f1, 9, 3, StandardCharsets.US_ASCII), Types.STRING)
                    .process(new Counter(), PAIR);
            case "windowed_count":
                return byKey(input)
                    .window(TumblingEventTimeWindows.of(Duration.ofSeconds(10)))
                    .aggregate(new Total(), new Told(), Types.LONG, Types.LONG, PAIR);
            case "table_join":
                DataStream<Tuple2<byte[], byte[]>> names =
                    env.fromSource(source(args, args[8]), WatermarkStrategy.noWatermarks(), "table", PAIR);
                return byKey(input).connect(byKey(names)).process(new Named(), PAIR);
            case "interval_join":
                DataStream<Tuple2<byte[], byte[]>> others = env.fromSource(source(args, args[8]), time(args), "others", PAIR);
                return byKey(input)
                    .intervalJoin(byKey(others))
                    .between(Duration.ofMillis(-500), Duration.ofMillis(500))
                    .process(new Paired(), PAIR);
            case "dead_letters":
                SingleOutputStreamOperator<Tuple2<byte[], byte[]>> halved = input.process(new Halved(), PAIR);
                halved.getSideOutput(Halved.DEAD).sinkTo(sink(args, args[9], args[4] + "-dead"));
                return halved;
            default:
                return input.map(pair -> Tuple2.of(pair.f0, upper(pair.f1)), PAIR);
        }
    }

    static KeyedStream<Tuple2<byte[], byte[]>, String> byKey(DataStream<Tuple2<byte[], byte[]>> input) {
        return input.keyBy(pair -> new String(pair.f0, StandardCharsets.ISO_8859_1), Types.STRING);
    }

    static byte[] ascii(String value) {
        return value.getBytes(StandardCharsets.US_ASCII);
    }

    static byte[] upper(byte[] value) {
        return new String(value, StandardCharsets.ISO_8859_1).toUpperCase().getBytes(StandardCharsets.ISO_8859_1);
    }

    static KafkaSource<Tuple2<byte[], byte[]>> source(String[] args, String topic) {
        return KafkaSource.<Tuple2<byte[], byte[]>>builder()
            .setBootstrapServers(args[1])
            .setTopics(topic)
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

    static KafkaSink<Tuple2<byte[], byte[]>> sink(String[] args, String topic, String prefix) {
        Properties settings = new Properties();
        settings.put("batch.size", "1000000");
        settings.put("linger.ms", "20");
        settings.put("buffer.memory", "134217728");
        settings.put("transaction.timeout.ms", "600000");
        return KafkaSink.<Tuple2<byte[], byte[]>>builder()
            .setBootstrapServers(args[1])
            .setRecordSerializer(new Writer(topic))
            .setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE)
            .setTransactionalIdPrefix(prefix)
            .setKafkaProducerConfig(settings)
            .build();
    }
}
