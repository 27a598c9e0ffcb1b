import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.errors.LogAndContinueProcessingExceptionHandler;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.processor.api.FixedKeyProcessor;
import org.apache.kafka.streams.processor.api.FixedKeyProcessorContext;
import org.apache.kafka.streams.processor.api.FixedKeyRecord;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowStore;

/**
 * Arguments: job, servers, source, target, name, folder, threads, milliseconds between commits, a second topic to
 * read, the topic of dead letters. Runs until killed.
 */
public class KafkaStreamsJob {
    static final Serde<byte[]> BYTES = Serdes.ByteArray();
    static final Consumed<byte[], byte[]> READ = Consumed.with(BYTES, BYTES);
    static final Produced<byte[], byte[]> WRITTEN = Produced.with(BYTES, BYTES);
    static final ObjectMapper JSON = new ObjectMapper();

    /** The running count of each key, in a store that is cached and logged. */
    static class Counter implements FixedKeyProcessor<byte[], byte[], byte[]> {
        private FixedKeyProcessorContext<byte[], byte[]> context;
        private KeyValueStore<byte[], Long> store;

        @Override
        public void init(FixedKeyProcessorContext<byte[], byte[]> context) {
            this.context = context;
            this.store = context.getStateStore("counts");
        }

        @Override
        public void process(FixedKeyRecord<byte[], byte[]> record) {
            Long before = store.get(record.key());
            long count = before == null ? 1 : before + 1;
            store.put(record.key(), count);
            context.forward(record.withValue(text(Long.toString(count))));
        }
    }

    public static void main(String[] args) {
        StreamsBuilder builder = new StreamsBuilder();
        KStream<byte[], byte[]> input = builder.stream(args[2], READ);
        KStream<byte[], byte[]> output = switch (args[0]) {
            case "count" -> counted(builder, input);
            case "rekeyed_count" -> counted(builder, rekeyed(input));
            case "windowed_count" -> windowed(input);
            case "table_join" -> joined(input, builder.table(args[8], READ));
            case "interval_join" -> paired(input, builder.stream(args[8], READ));
            case "dead_letters" -> input.mapValues(KafkaStreamsJob::halved);
            default -> input.mapValues(KafkaStreamsJob::upper);
        };
        output.to(args[3], WRITTEN);
        KafkaStreams streams = new KafkaStreams(builder.build(), settings(args));
        Runtime.getRuntime().addShutdownHook(new Thread(streams::close));
        streams.start();
    }

    static KStream<byte[], byte[]> counted(StreamsBuilder builder, KStream<byte[], byte[]> input) {
        builder.addStateStore(
            Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore("counts"), BYTES, Serdes.Long())
                .withCachingEnabled());
        return input.processValues(Counter::new, "counts");
    }

    /** By the last three digits of a value's number. */
    static KStream<byte[], byte[]> rekeyed(KStream<byte[], byte[]> input) {
        return input
            .selectKey((key, value) -> Arrays.copyOfRange(value, 9, 12))
            .repartition(Repartitioned.with(BYTES, BYTES).withName("rekeyed"));
    }

    /** What is final of each ten seconds. */
    static KStream<byte[], byte[]> windowed(KStream<byte[], byte[]> input) {
        return input
            .groupByKey(Grouped.with(BYTES, BYTES))
            .windowedBy(TimeWindows.ofSizeWithNoGrace(Duration.ofSeconds(10)))
            .count(
                Materialized.<byte[], Long, WindowStore<Bytes, byte[]>>as("windows")
                    .withKeySerde(BYTES)
                    .withValueSerde(Serdes.Long()))
            .suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded()))
            .toStream()
            .map((window, count) -> KeyValue.pair(window.key(), text(window.window().start() + " " + count)));
    }

    static KStream<byte[], byte[]> joined(KStream<byte[], byte[]> input, KTable<byte[], byte[]> names) {
        return input.leftJoin(names, (value, name) ->
            text(new String(value, 0, 12, StandardCharsets.US_ASCII) + " "
                + (name == null ? "" : new String(name, StandardCharsets.US_ASCII))));
    }

    /** Which of two topics is read first is a matter of luck: an hour's grace keeps what comes of it. */
    static KStream<byte[], byte[]> paired(KStream<byte[], byte[]> input, KStream<byte[], byte[]> others) {
        return input.join(
            others,
            (value, other) ->
                text(new String(value, 0, 12, StandardCharsets.US_ASCII) + " "
                    + new String(other, StandardCharsets.US_ASCII)),
            JoinWindows.ofTimeDifferenceAndGrace(Duration.ofMillis(500), Duration.ofHours(1)),
            StreamJoined.with(BYTES, BYTES, BYTES));
    }

    /** What can't be read is a dead letter. */
    static byte[] halved(byte[] value) {
        try {
            JsonNode body = JSON.readTree(value);
            return JSON.writeValueAsBytes(((ObjectNode) body).put("half", body.get("n").asLong() / 2));
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    static byte[] text(String value) {
        return value.getBytes(StandardCharsets.US_ASCII);
    }

    static byte[] upper(byte[] value) {
        return new String(value, StandardCharsets.ISO_8859_1).toUpperCase().getBytes(StandardCharsets.ISO_8859_1);
    }

    static Properties settings(String[] args) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[1]);
        settings.put("application.id", args[4]);
        settings.put("state.dir", args[5]);
        settings.put("num.stream.threads", args[6]);
        settings.put("commit.interval.ms", args[7]);
        settings.put("processing.guarantee", "exactly_once_v2");
        if (args[0].equals("dead_letters")) {
            settings.put("processing.exception.handler", LogAndContinueProcessingExceptionHandler.class);
            settings.put("errors.dead.letter.queue.topic.name", args[9]);
        }
        settings.put("replication.factor", "1");
        settings.put("consumer.auto.offset.reset", "earliest");
        settings.put("consumer.max.poll.records", "10000");
        settings.put("consumer.fetch.min.bytes", "100000");
        settings.put("consumer.max.partition.fetch.bytes", "10000000");
        settings.put("producer.batch.size", "1000000");
        settings.put("producer.linger.ms", "20");
        settings.put("producer.buffer.memory", "134217728");
        return settings;
    }
}
