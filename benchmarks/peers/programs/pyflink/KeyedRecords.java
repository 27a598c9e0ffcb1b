import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.source.reader.deserializer.KafkaRecordDeserializationSchema;
import org.apache.flink.types.Row;
import org.apache.flink.util.Collector;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;

/** Keys and values as rows of two byte arrays: PyFlink itself reads values only. */
public class KeyedRecords {
    public static class Reader implements KafkaRecordDeserializationSchema<Row> {
        @Override
        public void deserialize(ConsumerRecord<byte[], byte[]> record, Collector<Row> out) {
            out.collect(Row.of(record.key(), record.value()));
        }

        @Override
        public TypeInformation<Row> getProducedType() {
            return Types.ROW(Types.PRIMITIVE_ARRAY(Types.BYTE), Types.PRIMITIVE_ARRAY(Types.BYTE));
        }
    }

    public static class Writer implements KafkaRecordSerializationSchema<Row> {
        private final String topic;

        public Writer(String topic) {
            this.topic = topic;
        }

        @Override
        public ProducerRecord<byte[], byte[]> serialize(Row row, KafkaSinkContext context, Long timestamp) {
            return new ProducerRecord<>(topic, null, timestamp, (byte[]) row.getField(0), (byte[]) row.getField(1));
        }
    }
}
