import java.nio.charset.StandardCharsets;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.processor.api.FixedKeyProcessor;
import org.apache.kafka.streams.processor.api.FixedKeyProcessorContext;
import org.apache.kafka.streams.processor.api.FixedKeyRecord;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/** Arguments: job, servers, source, target, name, folder, threads, milliseconds between commits. Runs until killed. */
public class KafkaStreamsJob {
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
            context.forward(record.withValue(Long.toString(count).getBytes(StandardCharsets.US_ASCII)));
        }
    }

    public static void main(String[] args) {
        StreamsBuilder builder = new StreamsBuilder();
        KStream<byte[], byte[]> input = builder.stream(args[2], Consumed.with(Serdes.ByteArray(), Serdes.ByteArray()));
        KStream<byte[], byte[]> output;
        if (args[0].equals("count")) {
            builder.addStateStore(
                Stores.keyValueStoreBuilder(
                        Stores.persistentKeyValueStore("counts"), Serdes.ByteArray(), Serdes.Long())
                    .withCachingEnabled());
            output = input.processValues(Counter::new, "counts");
        } else {
            output = input.mapValues(KafkaStreamsJob::upper);
        }
        output.to(args[3], Produced.with(Serdes.ByteArray(), Serdes.ByteArray()));
        KafkaStreams streams = new KafkaStreams(builder.build(), settings(args));
        Runtime.getRuntime().addShutdownHook(new Thread(streams::close));
        streams.start();
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
