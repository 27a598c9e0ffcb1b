import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Scanner;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.TestOutputTopic;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.SlidingWindows;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.ValueJoiner;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.test.TestRecord;

/**
 * Worked examples on the test driver. A line of the input is one: its kind, how (final or current; inner, left or
 * outer), three times in milliseconds, and its records, between tabs. For each: a line for each record that something
 * is told at, in the notation of our own, and an empty one behind them.
 */
public class Examples {
    static final Serde<String> TEXT = Serdes.String();
    static final Consumed<String, String> READ = Consumed.with(TEXT, TEXT);
    static final ValueJoiner<String, String, String> PAIR = (one, other) -> "(" + shown(one) + "," + shown(other) + ")";
    static final Pattern RECORD = Pattern.compile("([a-z]?)(-?\\d+)(?::(\\w+))?(=(\\w*))?");

    public static void main(String[] args) {
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            String[] parts = lines.nextLine().split("\t");
            long[] times = {Long.parseLong(parts[2]), Long.parseLong(parts[3]), Long.parseLong(parts[4])};
            StreamsBuilder builder = new StreamsBuilder();
            switch (parts[0]) {
                case "tumbling", "hopping", "sliding", "session" -> windows(builder, parts[0], parts[1], times);
                case "streams" -> streams(builder, parts[1], times[0], times[1]);
                case "table" -> table(builder, parts[1]);
                case "as-of" -> asOf(builder, parts[1], times[0], times[1]);
                case "tables" -> tables(builder, parts[1]);
                default -> throw new IllegalArgumentException(parts[0]);
            }
            tell(builder, parts[5].split(" "));
            System.out.println();
        }
    }

    static Duration ms(long time) {
        return Duration.ofMillis(time);
    }

    /** Times: of the window (or the gap), from one to the next, and the grace. */
    static void windows(StreamsBuilder builder, String kind, String how, long[] times) {
        KGroupedStream<String, String> input = builder.stream("in", READ).groupByKey(Grouped.with(TEXT, TEXT));
        Duration size = ms(times[0]), grace = ms(times[2]);
        KTable<Windowed<String>, Long> counted = switch (kind) {
            case "tumbling" -> input.windowedBy(TimeWindows.ofSizeAndGrace(size, grace)).count(Materialized.with(TEXT, Serdes.Long()));
            case "hopping" -> input.windowedBy(TimeWindows.ofSizeAndGrace(size, grace).advanceBy(ms(times[1]))).count(Materialized.with(TEXT, Serdes.Long()));
            case "sliding" -> input.windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(size, grace)).count(Materialized.with(TEXT, Serdes.Long()));
            default -> input.windowedBy(SessionWindows.ofInactivityGapAndGrace(size, grace)).count(Materialized.with(TEXT, Serdes.Long()));
        };
        if (how.equals("final")) {
            counted = counted.suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded()));
        }
        String behind = kind.equals("tumbling") || kind.equals("hopping") ? ")" : "]";
        counted.toStream()
            .map((window, count) -> KeyValue.pair(
                window.key(),
                (window.key().equals("k") ? "" : window.key()) + "[" + window.window().start() + ","
                    + window.window().end() + behind + "=" + (count == null ? "None" : count)))
            .to("out", Produced.with(TEXT, TEXT));
    }

    static void streams(StreamsBuilder builder, String how, long within, long grace) {
        KStream<String, String> one = builder.stream("a", READ), other = builder.stream("b", READ);
        JoinWindows windows = JoinWindows.ofTimeDifferenceAndGrace(ms(within), ms(grace));
        StreamJoined<String, String, String> serdes = StreamJoined.with(TEXT, TEXT, TEXT);
        KStream<String, String> joined = switch (how) {
            case "left" -> one.leftJoin(other, PAIR, windows, serdes);
            case "outer" -> one.outerJoin(other, PAIR, windows, serdes);
            default -> one.join(other, PAIR, windows, serdes);
        };
        joined.to("out", Produced.with(TEXT, TEXT));
    }

    static void table(StreamsBuilder builder, String how) {
        joined(builder.stream("o", READ), builder.table("c", READ), how, Joined.with(TEXT, TEXT, TEXT));
    }

    static void asOf(StreamsBuilder builder, String how, long history, long grace) {
        KTable<String, String> versions = builder.table(
            "c", READ, Materialized.as(Stores.persistentVersionedKeyValueStore("versions", ms(history))));
        Joined<String, String, String> serdes = Joined.with(TEXT, TEXT, TEXT);
        joined(builder.stream("o", READ), versions, how, grace == 0 ? serdes : serdes.withGracePeriod(ms(grace)));
    }

    static void joined(
            KStream<String, String> input, KTable<String, String> table, String how,
            Joined<String, String, String> serdes) {
        (how.equals("left") ? input.leftJoin(table, PAIR, serdes) : input.join(table, PAIR, serdes))
            .to("out", Produced.with(TEXT, TEXT));
    }

    static void tables(StreamsBuilder builder, String how) {
        ValueJoiner<String, String, String> joiner = (left, right) -> shown(left) + shown(right);
        KTable<String, String> one = builder.table("l", READ), other = builder.table("r", READ);
        KTable<String, String> joined = switch (how) {
            case "left" -> one.leftJoin(other, joiner);
            case "outer" -> one.outerJoin(other, joiner);
            default -> one.join(other, joiner);
        };
        joined.toStream().to("out", Produced.with(TEXT, TEXT));
    }

    static String shown(String value) {
        return value == null ? "-" : value;
    }

    static void tell(StreamsBuilder builder, String[] records) {
        Properties settings = new Properties();
        settings.put("application.id", "examples");
        settings.put("bootstrap.servers", "nowhere:1");
        settings.put("default.key.serde", TEXT.getClass());
        settings.put("default.value.serde", TEXT.getClass());
        settings.put("statestore.cache.max.bytes", "0");
        // What is alone goes out as soon as it may.
        settings.put("__emit.interval.ms.kstreams.outer.join.spurious.results.fix__", "0");
        try (TopologyTestDriver driver = new TopologyTestDriver(builder.build(), settings, Instant.EPOCH)) {
            Map<String, TestInputTopic<String, String>> inputs = new HashMap<>();
            TestOutputTopic<String, String> output =
                driver.createOutputTopic("out", new StringDeserializer(), new StringDeserializer());
            for (String record : records) {
                Matcher match = RECORD.matcher(record);
                if (!match.matches()) {
                    throw new IllegalArgumentException(record);
                }
                String topic = match.group(1).isEmpty() ? "in" : match.group(1);
                String usual = topic.equals("in") ? "1" : match.group(1) + match.group(2);
                String value = match.group(4) == null ? usual : match.group(5).isEmpty() ? null : match.group(5);
                inputs
                    .computeIfAbsent(
                        topic, name -> driver.createInputTopic(name, new StringSerializer(), new StringSerializer()))
                    .pipeInput(match.group(3) == null ? "k" : match.group(3), value, Long.parseLong(match.group(2)));
                List<String> told = new ArrayList<>();
                for (TestRecord<String, String> each : output.readRecordsToList()) {
                    told.add((each.value() == null ? "None" : each.value()) + "@" + each.timestamp());
                }
                if (!told.isEmpty()) {
                    System.out.println(record + " -> " + String.join(", ", told));
                }
            }
        }
    }
}
