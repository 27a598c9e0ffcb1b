/* Joins clients of confluent-kafka by librdkafka's interceptors, and notes the records that were not delivered. */
#include "client.h"

#include <stdlib.h>
#include <string.h>

#define NAME "twopc"

_Thread_local int is_producing;

static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static struct client *all;
static long long last_number;

struct client *client_new(size_t failures_most) {
    struct client *client = calloc(1, sizeof *client);
    if (client == NULL)
        return NULL;
    pthread_mutex_init(&client->lock, NULL);
    pthread_mutex_init(&client->failures_lock, NULL);
    client->last_failure = &client->failures;
    client->failures_most = failures_most;
    client->references = 1;
    pthread_mutex_lock(&all_lock);
    client->number = ++last_number;
    client->next = all;
    all = client;
    pthread_mutex_unlock(&all_lock);
    return client;
}

void client_release(struct client *client) {
    pthread_mutex_lock(&all_lock);
    int left = --client->references;
    if (left == 0) {
        struct client **at = &all;
        while (*at != client)
            at = &(*at)->next;
        *at = client->next;
    }
    pthread_mutex_unlock(&all_lock);
    if (left > 0)
        return;
    failures_free(client->failures);
    pthread_mutex_destroy(&client->failures_lock);
    pthread_mutex_destroy(&client->lock);
    free(client);
}

/* Return the client with this number, with one more reference; NULL if there is none. */
static struct client *client_find(const char *number) {
    long long wanted = strtoll(number, NULL, 10);
    pthread_mutex_lock(&all_lock);
    struct client *client = all;
    while (client != NULL && client->number != wanted)
        client = client->next;
    if (client != NULL)
        client->references++;
    pthread_mutex_unlock(&all_lock);
    return client;
}

void client_detach(struct client *client) {
    if (client->queue != NULL)
        rd.queue_destroy(client->queue);
    client->queue = NULL;
    while (client->topics != NULL) {
        struct topic *topic = client->topics;
        client->topics = topic->next;
        rd.topic_destroy(topic->handle);
        free(topic);
    }
}

static void *copy_of(const void *data, size_t length) {
    /* A byte more: what is empty is not NULL. */
    void *copy = data == NULL ? NULL : malloc(length + 1);
    if (copy != NULL)
        memcpy(copy, data, length);
    return copy;
}

/* Called for every record by librdkafka's threads. What confluent-kafka wrote has its opaque, and is reported by it. */
static int on_acknowledgement(rd_kafka_t *handle, rd_kafka_message_t *message, void *opaque) {
    (void)handle;
    if (message->err == RD_OK || message->opaque != NULL || is_producing)
        return RD_OK;
    struct client *client = opaque;
    const char *topic = message->rkt == NULL ? "" : rd.topic_name(message->rkt);
    struct failure *failure = calloc(1, sizeof *failure);
    if (failure == NULL)
        return RD_OK;
    failure->code = message->err;
    failure->partition = message->partition;
    failure->topic = copy_of(topic, strlen(topic) + 1);
    failure->key = copy_of(message->key, message->key_len);
    failure->key_length = message->key_len;
    failure->value = copy_of(message->payload, message->len);
    failure->value_length = message->len;
    pthread_mutex_lock(&client->failures_lock);
    int is_kept = client->failures_count < client->failures_most;
    if (is_kept) {
        *client->last_failure = failure;
        client->last_failure = &failure->next;
        client->failures_count++;
    }
    pthread_mutex_unlock(&client->failures_lock);
    if (!is_kept)
        failures_free(failure);
    return RD_OK;
}

struct failure *client_failures(struct client *client) {
    pthread_mutex_lock(&client->failures_lock);
    struct failure *taken = client->failures;
    client->failures = NULL;
    client->last_failure = &client->failures;
    client->failures_count = 0;
    pthread_mutex_unlock(&client->failures_lock);
    return taken;
}

void failures_free(struct failure *failure) {
    while (failure != NULL) {
        struct failure *next = failure->next;
        free(failure->topic);
        free(failure->key);
        free(failure->value);
        free(failure);
        failure = next;
    }
}

/* Called when rd_kafka_destroy begins: the handle can still be called. */
static int on_destroy(rd_kafka_t *handle, void *opaque) {
    (void)handle;
    struct client *client = opaque;
    pthread_mutex_lock(&client->lock);
    client_detach(client);
    client->handle = NULL;
    pthread_mutex_unlock(&client->lock);
    return RD_OK;
}

static int on_new(rd_kafka_t *handle, const rd_kafka_conf_t *conf, void *opaque, char *said, size_t room) {
    (void)conf, (void)said, (void)room;
    struct client *client = opaque;
    int error = rd.interceptor_add_on_destroy(handle, NAME, on_destroy, client);
    if (error == RD_OK && rd.type(handle) == RD_PRODUCER)
        error = rd.interceptor_add_on_acknowledgement(handle, NAME, on_acknowledgement, client);
    if (error != RD_OK)
        return error;
    pthread_mutex_lock(&client->lock);
    client->handle = handle;
    pthread_mutex_unlock(&client->lock);
    return RD_OK;
}

/* The last of all calls for a handle; and the only one where it could not be made. */
static int on_conf_destroy(void *opaque) {
    client_release(opaque);
    return RD_OK;
}

static int on_conf_set(rd_kafka_conf_t *conf, const char *name, const char *value, char *said, size_t room,
                       void *opaque) {
    (void)said, (void)room, (void)opaque;
    if (value == NULL || strcmp(name, CLIENT_SETTING) != 0)
        return RD_UNKNOWN_OPTION;
    struct client *client = client_find(value);
    if (client == NULL)
        return RD_UNKNOWN_OPTION;
    if (rd.conf_interceptor_add_on_conf_destroy(conf, NAME, on_conf_destroy, client) != RD_OK) {
        client_release(client);
        return RD_UNKNOWN_OPTION;
    }
    return rd.conf_interceptor_add_on_new(conf, NAME, on_new, client) == RD_OK ? RD_OK : RD_UNKNOWN_OPTION;
}

/* By this name librdkafka calls every plugin. */
__attribute__((visibility("default"))) int conf_init(rd_kafka_conf_t *conf, void **opaque, char *said, size_t room) {
    (void)opaque, (void)said, (void)room;
    return rd.conf_interceptor_add_on_conf_set(conf, NAME, on_conf_set, NULL);
}
