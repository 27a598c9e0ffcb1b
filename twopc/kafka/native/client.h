/* A client of librdkafka that confluent-kafka owns, as batches go through it.
 *
 * librdkafka loads this module as a plugin of the client (plugin.library.paths), and the client's setting
 * twopc.client says which struct is its. So the handle comes by librdkafka's public interface, and so does the word
 * that it ends. */
#ifndef TWOPC_CLIENT_H
#define TWOPC_CLIENT_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "rdkafka.h"

#define CLIENT_SETTING "twopc.client"

/* A record that was not delivered, with what must be known of it. */
struct failure {
    struct failure *next;
    int code;
    int32_t partition;
    char *topic;
    void *key, *value;
    size_t key_length, value_length;
};

struct topic {
    struct topic *next;
    rd_kafka_topic_t *handle;
    char name[];
};

/* Whoever takes `lock` must not hold Python's. While `lock` is held, `handle` is alive or NULL. */
struct client {
    pthread_mutex_t lock;
    rd_kafka_t *handle;
    rd_kafka_queue_t *queue; /* of a consumer, into which all partitions go */
    struct topic *topics;    /* of a producer */

    /* Taken by librdkafka's threads, which may hold locks of their own: nothing is called while it is held. */
    pthread_mutex_t failures_lock;
    struct failure *failures, **last_failure;
    size_t failures_count, failures_most;

    /* Under the lock of all clients. */
    struct client *next;
    long long number;
    int references;
};

/* Whether this thread hands a record over. What becomes of that one meanwhile is the answer of the call: no failure of
 * a record that was taken. */
extern _Thread_local int is_producing;

/* Return a client that no handle has joined yet, with one reference; NULL without memory. */
struct client *client_new(size_t failures_most);
void client_release(struct client *);

/* Let go of the queue and the topics. With the lock held. */
void client_detach(struct client *);

/* Take the failures so far; free them with failures_free. */
struct failure *client_failures(struct client *);
void failures_free(struct failure *);

#endif
