/* The yardstick below Python: one topic into another in upper case, exactly once, in C on librdkafka.
 *
 *   copy SOURCE TARGET GROUP INTERVAL_MS SUBTASK SUBTASKS SETTINGS
 *
 * SETTINGS is a file with a line for each setting: "consumer NAME VALUE" or "producer NAME VALUE". Three producers in
 * turn, and once an interval: flush, positions into the transaction, on with the next producer, commit on a thread
 * beside the loop. It holds no state, and ends with 1 and a line at the first error: it survives nothing.
 *
 * Only what is called is declared, from librdkafka's public interface, so that the library that confluent-kafka brings
 * along serves and no header is needed.
 */
#include <ctype.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>

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

typedef struct {
    char *topic;
    int32_t partition;
    int64_t offset;
    void *metadata;
    size_t metadata_size;
    void *opaque;
    int err;
    void *private_data;
} topic_partition;

typedef struct {
    int count;
    int size;
    topic_partition *elements;
} partition_list;

typedef struct {
    int32_t id;
    int err;
    int32_t leader;
    int replicas;
    int32_t *replica;
    int isrs;
    int32_t *isr;
} partition_metadata;

typedef struct {
    char *topic;
    int partition_count;
    partition_metadata *partitions;
    int err;
} topic_metadata;

typedef struct {
    int broker_count;
    void *brokers;
    int topic_count;
    topic_metadata *topics;
} metadata;

enum { PRODUCER, CONSUMER };
enum { BATCH = 2000, SLOTS = 3, PARTITIONS = 1024, PATIENCE_MS = 60000, QUEUE_FULL = -184, COPY = 2 };
enum { V_END, V_TOPIC, V_RKT, V_PARTITION, V_VALUE, V_KEY, V_OPAQUE, V_FLAGS, V_TIMESTAMP };

extern void *rd_kafka_conf_new(void);
extern int rd_kafka_conf_set(void *conf, const char *name, const char *value, char *why, size_t room);
extern void *rd_kafka_new(int kind, void *conf, char *why, size_t room);
extern void *rd_kafka_topic_new(void *producer, const char *topic, void *conf);
extern const char *rd_kafka_err2str(int code);
extern const char *rd_kafka_error_string(void *error);
extern int rd_kafka_metadata(void *client, int all, void *topic, const metadata **found, int timeout_ms);
extern int rd_kafka_query_watermark_offsets(void *client, const char *topic, int32_t partition, int64_t *low,
                                            int64_t *high, int timeout_ms);
extern int rd_kafka_poll_set_consumer(void *consumer);
extern int rd_kafka_assign(void *consumer, void *partitions);
extern void *rd_kafka_queue_get_consumer(void *consumer);
extern ssize_t rd_kafka_consume_batch_queue(void *queue, int timeout_ms, message **messages, size_t most);
extern int64_t rd_kafka_message_timestamp(const message *one, int *kind);
extern void rd_kafka_message_destroy(message *one);
extern int rd_kafka_consumer_close(void *consumer);
extern partition_list *rd_kafka_topic_partition_list_new(int size);
extern topic_partition *rd_kafka_topic_partition_list_add(partition_list *list, const char *topic, int32_t partition);
extern void rd_kafka_topic_partition_list_destroy(partition_list *list);
extern void *rd_kafka_consumer_group_metadata(void *consumer);
extern void rd_kafka_consumer_group_metadata_destroy(void *group);
extern int rd_kafka_producev(void *producer, ...);
extern int rd_kafka_poll(void *producer, int timeout_ms);
extern int rd_kafka_flush(void *producer, int timeout_ms);
extern void *rd_kafka_init_transactions(void *producer, int timeout_ms);
extern void *rd_kafka_begin_transaction(void *producer);
extern void *rd_kafka_send_offsets_to_transaction(void *producer, const partition_list *offsets, void *group,
                                                  int timeout_ms);
extern void *rd_kafka_commit_transaction(void *producer, int timeout_ms);

typedef struct {
    void *client;
    void *topic;
    pthread_t commit;
    int is_committing;
} slot;

static void fail(const char *doing, const char *why) {
    fprintf(stderr, "%s: %s\n", doing, why);
    exit(1);
}

static void need(int code, const char *doing) {
    if (code)
        fail(doing, rd_kafka_err2str(code));
}

static void need_none(void *error, const char *doing) {
    if (error)
        fail(doing, rd_kafka_error_string(error));
}

static void set(void *conf, const char *name, const char *value) {
    char why[512];
    if (rd_kafka_conf_set(conf, name, value, why, sizeof why))
        fail(name, why);
}

static void *client(int kind, const char *settings, const char *transactional_id) {
    const char *of = kind == CONSUMER ? "consumer" : "producer";
    char whose[32], name[128], value[512], why[512];
    void *conf = rd_kafka_conf_new();
    FILE *file = fopen(settings, "r");
    if (!file)
        fail(settings, "can't be opened");
    while (fscanf(file, "%31s %127s %511s", whose, name, value) == 3)
        if (!strcmp(whose, of))
            set(conf, name, value);
    fclose(file);
    if (transactional_id)
        set(conf, "transactional.id", transactional_id);
    void *made = rd_kafka_new(kind, conf, why, sizeof why);
    if (!made)
        fail("a client", why);
    return made;
}

static void *commit(void *given) {
    slot *ending = given;
    need_none(rd_kafka_commit_transaction(ending->client, PATIENCE_MS), "commit");
    return NULL;
}

static void wait_for_commit(slot *one) {
    if (one->is_committing)
        pthread_join(one->commit, NULL);
    one->is_committing = 0;
}

static void begin(slot *next) {
    wait_for_commit(next);
    need_none(rd_kafka_begin_transaction(next->client), "begin");
}

/* Pre-commit what the producer holds, and leave the commit to a thread. */
static void checkpoint(slot *ending, void *consumer, const char *source, const int64_t *next) {
    partition_list *offsets = rd_kafka_topic_partition_list_new(4);
    for (int partition = 0; partition < PARTITIONS; partition++)
        if (next[partition] >= 0)
            rd_kafka_topic_partition_list_add(offsets, source, partition)->offset = next[partition];
    void *group = rd_kafka_consumer_group_metadata(consumer);
    need(rd_kafka_flush(ending->client, PATIENCE_MS), "flush");
    need_none(rd_kafka_send_offsets_to_transaction(ending->client, offsets, group, PATIENCE_MS), "offsets");
    rd_kafka_consumer_group_metadata_destroy(group);
    rd_kafka_topic_partition_list_destroy(offsets);
    if (pthread_create(&ending->commit, NULL, commit, ending))
        fail("commit", "no thread");
    ending->is_committing = 1;
}

static void copy_one(slot *to, const message *one, char *upper) {
    const char *value = one->payload;
    int kind, error;
    for (size_t index = 0; index < one->len; index++)
        upper[index] = toupper((unsigned char)value[index]);
    while ((error = rd_kafka_producev(to->client, V_RKT, to->topic, V_PARTITION, (int32_t)-1, V_VALUE, upper, one->len,
                                      V_KEY, one->key, one->key_len, V_FLAGS, COPY, V_TIMESTAMP,
                                      rd_kafka_message_timestamp(one, &kind), V_END)) == QUEUE_FULL)
        rd_kafka_poll(to->client, 10);
    need(error, "produce");
}

static int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

int main(int count, char **given) {
    static int64_t next[PARTITIONS];
    static char upper[1 << 20];
    static message *messages[BATCH];
    if (count != 8)
        fail("usage", "copy SOURCE TARGET GROUP INTERVAL_MS SUBTASK SUBTASKS SETTINGS");
    const char *source = given[1], *target = given[2], *group = given[3], *settings = given[7];
    int64_t interval_ms = atoll(given[4]), left = 0;
    int subtask = atoi(given[5]), subtasks = atoi(given[6]);
    slot slots[SLOTS] = {0};
    for (int index = 0; index < SLOTS; index++) {
        char id[512];
        snprintf(id, sizeof id, "%s-%d", group, index);
        slots[index].client = client(PRODUCER, settings, id);
        slots[index].topic = rd_kafka_topic_new(slots[index].client, target, NULL);
        /* Without it the first record of a transaction may go to no partition. */
        const metadata *known;
        need(rd_kafka_metadata(slots[index].client, 0, slots[index].topic, &known, PATIENCE_MS), "metadata");
        need_none(rd_kafka_init_transactions(slots[index].client, PATIENCE_MS), "init");
    }
    void *consumer = client(CONSUMER, settings, NULL);
    const metadata *found;
    need(rd_kafka_metadata(consumer, 0, rd_kafka_topic_new(consumer, source, NULL), &found, PATIENCE_MS), "metadata");
    partition_list *mine = rd_kafka_topic_partition_list_new(4);
    for (int partition = 0; partition < PARTITIONS; partition++) {
        next[partition] = -1;
        if (partition < found->topics[0].partition_count && partition % subtasks == subtask) {
            int64_t low, high;
            need(rd_kafka_query_watermark_offsets(consumer, source, partition, &low, &high, PATIENCE_MS), "end");
            rd_kafka_topic_partition_list_add(mine, source, partition)->offset = next[partition] = low;
            left += high - low;
        }
    }
    rd_kafka_poll_set_consumer(consumer);
    need(rd_kafka_assign(consumer, mine), "assign");
    void *queue = rd_kafka_queue_get_consumer(consumer);
    int turn = 0;
    begin(&slots[turn]);
    int64_t due = now_ms() + interval_ms;
    while (left > 0) {
        ssize_t taken = rd_kafka_consume_batch_queue(queue, 100, messages, BATCH);
        for (ssize_t index = 0; index < taken; index++) {
            message *one = messages[index];
            need(one->err, "read");
            if (one->len > sizeof upper)
                fail("read", "the value is too long for this program");
            copy_one(&slots[turn], one, upper);
            next[one->partition] = one->offset + 1;
            rd_kafka_message_destroy(one);
        }
        rd_kafka_poll(slots[turn].client, 0);
        left -= taken;
        if (left <= 0 || now_ms() >= due) {
            checkpoint(&slots[turn], consumer, source, next);
            turn = (turn + 1) % SLOTS;
            if (left > 0)
                begin(&slots[turn]);
            due = now_ms() + interval_ms;
        }
    }
    for (int index = 0; index < SLOTS; index++)
        wait_for_commit(&slots[index]);
    rd_kafka_consumer_close(consumer);
    return 0;
}
