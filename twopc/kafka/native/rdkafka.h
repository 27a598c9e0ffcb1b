/* The part of librdkafka's public interface that is called here, declared anew: the library that confluent-kafka has
 * loaded serves, so no header of it is needed, and nothing is linked. */
#ifndef TWOPC_RDKAFKA_H
#define TWOPC_RDKAFKA_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct rd_kafka_s rd_kafka_t;
typedef struct rd_kafka_conf_s rd_kafka_conf_t;
typedef struct rd_kafka_topic_s rd_kafka_topic_t;
typedef struct rd_kafka_queue_s rd_kafka_queue_t;
typedef struct rd_kafka_headers_s rd_kafka_headers_t;

typedef struct {
    int err;
    rd_kafka_topic_t *rkt;
    int32_t partition;
    void *payload;
    size_t len;
    void *key;
    size_t key_len;
    int64_t offset;
    void *opaque;
} rd_kafka_message_t;

enum { RD_OK = 0, RD_UNKNOWN_OPTION = -2 };
enum { RD_PRODUCER = 0, RD_CONSUMER = 1 };
enum { RD_COPY = 2 };
/* What comes next among the arguments of producev. */
enum { RD_END, RD_TOPIC_NAME, RD_TOPIC, RD_PARTITION, RD_VALUE, RD_KEY, RD_OPAQUE, RD_FLAGS, RD_TIMESTAMP, RD_HEADER, RD_HEADERS };

typedef int on_conf_set_f(rd_kafka_conf_t *, const char *name, const char *value, char *said, size_t room, void *opaque);
typedef int on_conf_destroy_f(void *opaque);
typedef int on_new_f(rd_kafka_t *, const rd_kafka_conf_t *, void *opaque, char *said, size_t room);
typedef int on_destroy_f(rd_kafka_t *, void *opaque);
typedef int on_acknowledgement_f(rd_kafka_t *, rd_kafka_message_t *, void *opaque);

/* X(result, name, arguments): every function of librdkafka that is called. */
#define RD_FUNCTIONS(X)                                                                                                \
    X(int, version, (void))                                                                                            \
    X(const char *, err2str, (int))                                                                                    \
    X(int, last_error, (void))                                                                                         \
    X(int, type, (const rd_kafka_t *))                                                                                 \
    X(int, conf_interceptor_add_on_conf_set, (rd_kafka_conf_t *, const char *, on_conf_set_f *, void *))               \
    X(int, conf_interceptor_add_on_conf_destroy, (rd_kafka_conf_t *, const char *, on_conf_destroy_f *, void *))       \
    X(int, conf_interceptor_add_on_new, (rd_kafka_conf_t *, const char *, on_new_f *, void *))                         \
    X(int, interceptor_add_on_destroy, (rd_kafka_t *, const char *, on_destroy_f *, void *))                           \
    X(int, interceptor_add_on_acknowledgement, (rd_kafka_t *, const char *, on_acknowledgement_f *, void *))           \
    X(rd_kafka_queue_t *, queue_new, (rd_kafka_t *))                                                                   \
    X(rd_kafka_queue_t *, queue_get_partition, (rd_kafka_t *, const char *, int32_t))                                  \
    X(void, queue_forward, (rd_kafka_queue_t *, rd_kafka_queue_t *))                                                   \
    X(void, queue_destroy, (rd_kafka_queue_t *))                                                                       \
    X(ssize_t, consume_batch_queue, (rd_kafka_queue_t *, int, rd_kafka_message_t **, size_t))                          \
    X(const char *, message_errstr, (const rd_kafka_message_t *))                                                      \
    X(int64_t, message_timestamp, (const rd_kafka_message_t *, int *))                                                 \
    X(int, message_headers, (const rd_kafka_message_t *, rd_kafka_headers_t **))                                       \
    X(void, message_destroy, (rd_kafka_message_t *))                                                                   \
    X(size_t, header_cnt, (const rd_kafka_headers_t *))                                                                \
    X(int, header_get_all, (const rd_kafka_headers_t *, size_t, const char **, const void **, size_t *))               \
    X(rd_kafka_headers_t *, headers_new, (size_t))                                                                     \
    X(int, header_add, (rd_kafka_headers_t *, const char *, ssize_t, const void *, ssize_t))                           \
    X(void, headers_destroy, (rd_kafka_headers_t *))                                                                   \
    X(rd_kafka_topic_t *, topic_new, (rd_kafka_t *, const char *, void *))                                             \
    X(const char *, topic_name, (const rd_kafka_topic_t *))                                                            \
    X(void, topic_destroy, (rd_kafka_topic_t *))                                                                       \
    X(int, producev, (rd_kafka_t *, ...))

#define RD_MEMBER(result, name, arguments) result(*name) arguments;
struct rdkafka {
    RD_FUNCTIONS(RD_MEMBER)
};
#undef RD_MEMBER

/* Filled by rdkafka_load; nothing else may be called before. */
extern struct rdkafka rd;

/* Find the functions in an object that is loaded, or in those that it needs; return NULL, or the name of the missing. */
const char *rdkafka_load(const char *path);

#endif
