/* Writes columns to a producer, as far as they are plain; what is not is left to confluent-kafka, errors too. */
#include "module.h"

#include <structmember.h>

#include <stdlib.h>
#include <string.h>

typedef struct {
    PyObject_HEAD
    struct client *client;
    long long number;
} Writer;

enum { AT_ONCE = 1024 };

/* One record as librdkafka takes it. The bytes are those of Python's objects. */
struct item {
    const char *value, *key;
    Py_ssize_t value_length, key_length;
    long long timestamp;
    int32_t partition;
    rd_kafka_headers_t *headers;
};

/* A column of objects, or of what Arrow has in their place; or neither, where there is none. */
struct column {
    PyObject *objects; /* a tuple, which nobody can change */
    int is_packed;
    Py_ssize_t start; /* of the packed: the element that is the first of the column */
    Py_buffer validity, offsets, data;
};

/* The columns of a batch, of one length. */
struct columns {
    struct column values, keys, timestamps, partitions, headers;
};

static PyObject *writer_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    Py_ssize_t most;
    if (kwargs != NULL && PyDict_Size(kwargs) != 0)
        return PyErr_Format(PyExc_TypeError, "Writer takes no names of arguments");
    if (!PyArg_ParseTuple(args, "n", &most))
        return NULL;
    Writer *self = (Writer *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (self == NULL)
        return NULL;
    self->client = client_new(most < 0 ? 0 : (size_t)most);
    if (self->client == NULL) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    self->number = self->client->number;
    return (PyObject *)self;
}

static void writer_dealloc(Writer *self) {
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    if (self->client != NULL) {
        client_lock(self->client);
        client_detach(self->client);
        pthread_mutex_unlock(&self->client->lock);
        client_release(self->client);
    }
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

/* Point to the bytes of a key or value; return 0 if it is none that confluent-kafka and this take alike. */
static int take_bytes(PyObject *object, const char **data, Py_ssize_t *length) {
    *data = NULL;
    *length = 0;
    if (object == Py_None)
        return 1;
    if (PyBytes_Check(object)) {
        *data = PyBytes_AsString(object);
        *length = PyBytes_Size(object);
        return 1;
    }
    if (PyUnicode_Check(object) && (*data = PyUnicode_AsUTF8AndSize(object, length)) != NULL)
        return 1;
    PyErr_Clear();
    return 0;
}

static int is_null(const struct column *column, Py_ssize_t at) {
    return column->validity.buf != NULL && !(((const unsigned char *)column->validity.buf)[at / 8] >> at % 8 & 1);
}

static int32_t offset_at(const struct column *column, Py_ssize_t at) {
    int32_t offset;
    memcpy(&offset, (const char *)column->offsets.buf + at * (Py_ssize_t)sizeof offset, sizeof offset);
    return offset;
}

static int take_bytes_of(const struct column *column, Py_ssize_t index, const char **data, Py_ssize_t *length) {
    if (!column->is_packed)
        return take_bytes(PyTuple_GetItem(column->objects, index), data, length);
    Py_ssize_t at = column->start + index;
    *data = NULL;
    *length = 0;
    if (is_null(column, at))
        return 1;
    /* What is empty is not NULL. */
    *data = column->data.buf == NULL ? "" : (const char *)column->data.buf + offset_at(column, at);
    *length = offset_at(column, at + 1) - offset_at(column, at);
    return 1;
}

static int take_integer(PyObject *object, long long least, long long most, long long *number) {
    int overflow;
    if (!PyLong_CheckExact(object))
        return 0;
    *number = PyLong_AsLongLongAndOverflow(object, &overflow);
    return overflow == 0 && *number >= least && *number <= most;
}

static int take_timestamp(const struct column *column, Py_ssize_t index, long long *timestamp) {
    int64_t found;
    if (!column->is_packed)
        return take_integer(PyTuple_GetItem(column->objects, index), INT64_MIN, INT64_MAX, timestamp);
    memcpy(&found, (const char *)column->data.buf + (column->start + index) * (Py_ssize_t)sizeof found, sizeof found);
    *timestamp = found;
    return 1;
}

/* Make librdkafka's headers of a list or tuple of pairs; return 0 where that is left to confluent-kafka. */
static int take_headers(PyObject *pairs, rd_kafka_headers_t **headers) {
    *headers = NULL;
    if (pairs == Py_None)
        return 1;
    int is_list = PyList_CheckExact(pairs);
    if (!is_list && !PyTuple_CheckExact(pairs))
        return 0;
    Py_ssize_t count = is_list ? PyList_Size(pairs) : PyTuple_Size(pairs);
    if (count == 0)
        return 1;
    *headers = rd.headers_new((size_t)count);
    for (Py_ssize_t index = 0; index < count; index++) {
        PyObject *pair = is_list ? PyList_GetItem(pairs, index) : PyTuple_GetItem(pairs, index);
        const char *name, *value;
        Py_ssize_t name_length, value_length;
        if (!PyTuple_CheckExact(pair) || PyTuple_Size(pair) != 2 || !PyUnicode_Check(PyTuple_GetItem(pair, 0)) ||
            !take_bytes(PyTuple_GetItem(pair, 0), &name, &name_length) ||
            memchr(name, 0, (size_t)name_length) != NULL ||
            !take_bytes(PyTuple_GetItem(pair, 1), &value, &value_length) ||
            rd.header_add(*headers, name, name_length, value, value_length) != RD_OK) {
            rd.headers_destroy(*headers);
            *headers = NULL;
            return 0;
        }
    }
    return 1;
}

static int take_item(const struct columns *columns, Py_ssize_t index, struct item *item) {
    long long partition = -1;
    PyObject *partitions = columns->partitions.objects, *headers = columns->headers.objects;
    if (partitions != NULL && !take_integer(PyTuple_GetItem(partitions, index), -1, INT32_MAX, &partition))
        return 0;
    item->partition = (int32_t)partition;
    item->headers = NULL;
    return take_timestamp(&columns->timestamps, index, &item->timestamp) &&
           take_bytes_of(&columns->values, index, &item->value, &item->value_length) &&
           take_bytes_of(&columns->keys, index, &item->key, &item->key_length) &&
           (headers == NULL || take_headers(PyTuple_GetItem(headers, index), &item->headers));
}

/* Return librdkafka's handle of a topic, made where it is asked for the first time. With the lock held. */
static rd_kafka_topic_t *topic_of(struct client *client, const char *name) {
    struct topic *topic = client->topics;
    while (topic != NULL && strcmp(topic->name, name) != 0)
        topic = topic->next;
    if (topic != NULL)
        return topic->handle;
    if ((topic = malloc(sizeof *topic + strlen(name) + 1)) == NULL)
        return NULL;
    if ((topic->handle = rd.topic_new(client->handle, name, NULL)) == NULL) {
        free(topic);
        return NULL;
    }
    strcpy(topic->name, name);
    topic->next = client->topics;
    client->topics = topic;
    return topic->handle;
}

/* Hand over one record after the other until one is not taken; return how many were. Without Python's lock. */
static Py_ssize_t produce(struct client *client, const char *name, const struct item *items, Py_ssize_t count) {
    Py_ssize_t index = 0;
    rd_kafka_topic_t *topic = NULL;
    pthread_mutex_lock(&client->lock);
    if (client->handle != NULL && rd.type(client->handle) == RD_PRODUCER)
        topic = topic_of(client, name);
    is_producing = 1;
    for (; topic != NULL && index < count; index++) {
        const struct item *item = &items[index];
        int error = item->headers == NULL
                        ? rd.producev(client->handle, RD_TOPIC, topic, RD_PARTITION, item->partition, RD_VALUE,
                                      item->value, (size_t)item->value_length, RD_KEY, item->key,
                                      (size_t)item->key_length, RD_FLAGS, RD_COPY, RD_TIMESTAMP,
                                      (int64_t)item->timestamp, RD_END)
                        : rd.producev(client->handle, RD_TOPIC, topic, RD_PARTITION, item->partition, RD_VALUE,
                                      item->value, (size_t)item->value_length, RD_KEY, item->key,
                                      (size_t)item->key_length, RD_FLAGS, RD_COPY, RD_TIMESTAMP,
                                      (int64_t)item->timestamp, RD_HEADERS, item->headers, RD_END);
        if (error != RD_OK)
            break;
    }
    is_producing = 0;
    pthread_mutex_unlock(&client->lock);
    return index;
}

/* Write from `start` on; return the index of the first record that was not taken. Some at a time: what is noted of them
 * stays in the processor's cache. */
static Py_ssize_t write_columns(struct client *client, const char *topic, const struct columns *columns,
                                Py_ssize_t length, Py_ssize_t start) {
    Py_ssize_t at = start < length ? start : length, count, taken;
    struct item *items = malloc(AT_ONCE * sizeof *items);
    if (items == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    do {
        count = 0;
        while (count < AT_ONCE && at + count < length && take_item(columns, at + count, &items[count]))
            count++;
        Py_BEGIN_ALLOW_THREADS;
        taken = produce(client, topic, items, count);
        /* The headers of what was taken are librdkafka's. */
        for (Py_ssize_t index = taken; index < count; index++)
            if (items[index].headers != NULL)
                rd.headers_destroy(items[index].headers);
        Py_END_ALLOW_THREADS;
        at += taken;
    } while (taken == AT_ONCE);
    free(items);
    return at;
}

static int refuse(const char *what) {
    PyErr_Format(PyExc_ValueError, "%s", what);
    return -1;
}

static int take_buffer(PyObject *object, Py_buffer *buffer) {
    return object == Py_None ? 0 : PyObject_GetBuffer(object, buffer, PyBUF_SIMPLE);
}

/* Whether the buffers have what is said of them: nothing outside them may be read. */
static int fits(const struct column *column, Py_ssize_t length, int is_of_integers) {
    if (column->start < 0 || column->start > PY_SSIZE_T_MAX / 16 - length - 1)
        return 0;
    Py_ssize_t end = column->start + length;
    if (is_of_integers)
        return column->validity.buf == NULL && column->data.len / (Py_ssize_t)sizeof(int64_t) >= end;
    if (column->validity.buf != NULL && column->validity.len < (end + 7) / 8)
        return 0;
    if (column->offsets.len / (Py_ssize_t)sizeof(int32_t) < end + 1 || offset_at(column, column->start) < 0)
        return 0;
    for (Py_ssize_t at = column->start; at < end; at++)
        if (offset_at(column, at + 1) < offset_at(column, at))
            return 0;
    return offset_at(column, end) <= column->data.len;
}

/* Take a column as Arrow has it: a tuple of length, start, validity, offsets and data. */
static int take_packed(struct column *column, PyObject *given, Py_ssize_t length, int is_of_integers) {
    Py_ssize_t said;
    PyObject *validity, *offsets, *data;
    column->is_packed = 1;
    if (!PyArg_ParseTuple(given, "nnOOO", &said, &column->start, &validity, &offsets, &data) ||
        take_buffer(validity, &column->validity) < 0 || take_buffer(offsets, &column->offsets) < 0 ||
        take_buffer(data, &column->data) < 0)
        return -1;
    return said == length && fits(column, length, is_of_integers) ? 0 : refuse("the buffers of a column must fit");
}

static int take_objects(struct column *column, PyObject *given, Py_ssize_t length) {
    if (!PyList_Check(given) || PyList_Size(given) != length)
        return refuse("the columns must be lists of one length");
    column->objects = PyList_AsTuple(given);
    return column->objects == NULL ? -1 : 0;
}

static int take_column(struct column *column, PyObject *given, Py_ssize_t length, int is_of_integers) {
    return PyTuple_Check(given) ? take_packed(column, given, length, is_of_integers)
                                : take_objects(column, given, length);
}

static void release(struct column *column) {
    Py_XDECREF(column->objects);
    PyBuffer_Release(&column->validity);
    PyBuffer_Release(&column->offsets);
    PyBuffer_Release(&column->data);
}

/* Return how long a column is; -1 with an exception set if it is none. */
static Py_ssize_t length_of(PyObject *given) {
    if (PyList_Check(given))
        return PyList_Size(given);
    if (!PyTuple_Check(given) || PyTuple_Size(given) != 5)
        return refuse("the values must be a list, or a packed column");
    Py_ssize_t length = PyLong_AsSsize_t(PyTuple_GetItem(given, 0));
    return length >= 0 || PyErr_Occurred() ? length : refuse("the length of a column must not be negative");
}

static PyObject *write_records(Writer *self, PyObject *args) {
    const char *topic;
    PyObject *values, *keys, *timestamps, *partitions, *headers;
    Py_ssize_t start, end = -1;
    if (!PyArg_ParseTuple(args, "sOOOOOn", &topic, &values, &keys, &timestamps, &partitions, &headers, &start))
        return NULL;
    if (start < 0)
        return PyErr_Format(PyExc_ValueError, "the start must be no less than 0");
    Py_ssize_t length = length_of(values);
    if (length < 0)
        return NULL;
    struct columns columns = {0};
    if (take_column(&columns.values, values, length, 0) == 0 && take_column(&columns.keys, keys, length, 0) == 0 &&
        take_column(&columns.timestamps, timestamps, length, 1) == 0 &&
        (partitions == Py_None || take_objects(&columns.partitions, partitions, length) == 0) &&
        (headers == Py_None || take_objects(&columns.headers, headers, length) == 0))
        end = write_columns(self->client, topic, &columns, length, start);
    release(&columns.values);
    release(&columns.keys);
    release(&columns.timestamps);
    release(&columns.partitions);
    release(&columns.headers);
    return end < 0 ? NULL : PyLong_FromSsize_t(end);
}

static PyObject *take_failures(Writer *self, PyObject *nothing) {
    (void)nothing;
    struct failure *first = client_failures(self->client);
    PyObject *list = PyList_New(0);
    for (struct failure *failure = first; list != NULL && failure != NULL; failure = failure->next) {
        PyObject *made = Py_BuildValue("(isiy#y#)", failure->code, failure->topic == NULL ? "" : failure->topic,
                                       (int)failure->partition, failure->key, (Py_ssize_t)failure->key_length,
                                       failure->value, (Py_ssize_t)failure->value_length);
        if (made == NULL || PyList_Append(list, made) < 0)
            Py_CLEAR(list);
        Py_XDECREF(made);
    }
    failures_free(first);
    return list;
}

static PyMethodDef methods[] = {
    {"write", (PyCFunction)write_records, METH_VARARGS,
     "write(topic, values, keys, timestamps, partitions, headers, start)\n--\n\nHand the records from `start` on to the "
     "producer; return the index of the first that was not taken, for whatever reason: the producer itself says it. "
     "Partitions and headers may be None for all. Values, keys and timestamps are lists, or as Records packs them. "
     "The producer must know the topic."},
    {"take_failures", (PyCFunction)take_failures, METH_NOARGS,
     "take_failures()\n--\n\nReturn the records of `write` that were not delivered, since the last call: code, topic, "
     "partition, key and value of each."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    {"number", T_LONGLONG, offsetof(Writer, number), READONLY, "The value of the producer's setting for it."},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot type_slots[] = {
    {Py_tp_doc, "Writer(most)\n--\n\nWrites to one producer of confluent-kafka; keeps up to `most` failures."},
    {Py_tp_new, writer_new},
    {Py_tp_dealloc, writer_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {0, NULL},
};

static PyType_Spec type_spec = {
    .name = "twopc.kafka.native._batches.Writer",
    .basicsize = sizeof(Writer),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = type_slots,
};

int writer_add_type(PyObject *module) {
    PyObject *type = PyType_FromSpec(&type_spec);
    if (type == NULL)
        return -1;
    int failed = PyModule_AddObjectRef(module, "Writer", type);
    Py_DECREF(type);
    return failed;
}
