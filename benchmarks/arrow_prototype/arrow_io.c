/* Whole batches between librdkafka and Arrow's buffers: the part of the prototype that must be compiled.
 *
 * Only what is called is declared, from librdkafka's public interface, so that the library that confluent-kafka brings
 * along serves and no header is needed. Not part of the product: it handles no error but by saying so and stopping.
 */
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

typedef struct {
    int err;
    void *topic;
    int32_t partition;
    void *payload;
    size_t len;
    void *key;
    size_t key_len;
    int64_t offset;
    void *private_data;
} message;

extern ssize_t rd_kafka_consume_batch_queue(void *queue, int timeout_ms, message **messages, size_t most);
extern int64_t rd_kafka_message_timestamp(const message *one, int *kind);
extern void rd_kafka_message_destroy(message *one);
extern int rd_kafka_producev(void *producer, ...);
extern int rd_kafka_poll(void *producer, int timeout_ms);

enum { MOST = 16384, QUEUE_FULL = -184, COPY = 2 };
enum { V_END, V_TOPIC, V_RKT, V_PARTITION, V_VALUE, V_KEY, V_OPAQUE, V_FLAGS, V_TIMESTAMP };

/* Read up to `most` records into columns; return how many, -1 where a buffer is too small or a record has an error.
 * `next` holds the next offset of each partition. */
ssize_t take(void *queue, int most, int timeout_ms, char *values, size_t room, int32_t *value_ends, char *keys,
             size_t key_room, int32_t *key_ends, int64_t *stamps, int64_t *next) {
    message *messages[MOST];
    ssize_t found = rd_kafka_consume_batch_queue(queue, timeout_ms, messages, most < MOST ? most : MOST);
    ssize_t count = 0, failed = 0;
    int32_t value_end = 0, key_end = 0;
    value_ends[0] = key_ends[0] = 0;
    for (ssize_t index = 0; index < found; index++) {
        message *one = messages[index];
        if (one->err || value_end + one->len > room || key_end + one->key_len > key_room) {
            failed = 1;
        } else {
            int kind;
            memcpy(values + value_end, one->payload, one->len);
            memcpy(keys + key_end, one->key, one->key_len);
            value_ends[++count] = value_end += one->len;
            key_ends[count] = key_end += one->key_len;
            stamps[count - 1] = rd_kafka_message_timestamp(one, &kind);
            next[one->partition] = one->offset + 1;
        }
        rd_kafka_message_destroy(one);
    }
    return failed ? -1 : count;
}

/* Hand the columns to the producer, waiting where its queue is full; return 0, or librdkafka's error. */
int put(void *producer, void *topic, ssize_t count, const char *values, const int32_t *value_ends, const char *keys,
        const int32_t *key_ends, const int64_t *stamps) {
    for (ssize_t index = 0; index < count; index++) {
        const char *value = values + value_ends[index], *key = keys + key_ends[index];
        size_t value_len = value_ends[index + 1] - value_ends[index], key_len = key_ends[index + 1] - key_ends[index];
        int error;
        while ((error = rd_kafka_producev(producer, V_RKT, topic, V_PARTITION, (int32_t)-1, V_VALUE, value, value_len,
                                          V_KEY, key, key_len, V_FLAGS, COPY, V_TIMESTAMP, stamps[index], V_END)) ==
               QUEUE_FULL)
            rd_kafka_poll(producer, 10);
        if (error)
            return error;
    }
    rd_kafka_poll(producer, 0);
    return 0;
}
