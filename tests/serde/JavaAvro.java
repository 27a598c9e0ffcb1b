import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.GenericRecordBuilder;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;

/**
 * Java's own opinion of Avro's bytes. Reads lines: a schema, a tab, and the bytes of a value in hex, which it reads and
 * writes again; or nothing, for the record that has all defaults. Prints what it wrote.
 */
final class JavaAvro {
    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] parts = line.split("\t", -1);
            Schema schema = new Schema.Parser().parse(parts[0]);
            Object value = parts[1].equals("defaults")
                    ? new GenericRecordBuilder(schema).build()
                    : read(schema, HexFormat.of().parseHex(parts[1]));
            System.out.println(HexFormat.of().formatHex(written(schema, value)));
        }
    }

    private static Object read(Schema schema, byte[] data) throws Exception {
        return new GenericDatumReader<Object>(schema).read(null, DecoderFactory.get().binaryDecoder(data, null));
    }

    private static byte[] written(Schema schema, Object value) throws Exception {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        BinaryEncoder encoder = EncoderFactory.get().binaryEncoder(out, null);
        new GenericDatumWriter<Object>(schema, new GenericData()).write(value, encoder);
        encoder.flush();
        return out.toByteArray();
    }
}
