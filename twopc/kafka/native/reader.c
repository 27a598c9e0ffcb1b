/* Reads a consumer's partitions through a queue of their own, so that what confluent-kafka must call back about stays
 * in the consumer's: that comes when the consumer itself is polled. */
#include "module.h"

#include <structmember.h>

#include <stdlib.h>
#include <string.h>

enum { MOST_RECORDS = 1 << 20 };

typedef struct {
    PyObject_HEAD
    struct client *client;
    PyObject *topics; /* a tuple of names */
    PyObject *owner;  /* the consumer: as long as its queue is held, nobody may destroy it for want of references */
    long long number;
} Reader;

static PyObject *reader_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    if (PyTuple_Size(args) != 0 || (kwargs != NULL && PyDict_Size(kwargs) != 0)) {
        PyErr_SetString(PyExc_TypeError, "Reader takes no arguments");
        return NULL;
    }
    Reader *self = (Reader *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (self == NULL)
        return NULL;
    self->topics = PyTuple_New(0);
    self->client = client_new(0);
    if (self->topics == NULL || self->client == NULL) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    self->number = self->client->number;
    return (PyObject *)self;
}

/* Let go of the queue: what is in it is lost, and nothing can be read any more. */
static void let_go(Reader *self) {
    client_lock(self->client);
    client_detach(self->client);
    pthread_mutex_unlock(&self->client->lock);
}

static void reader_dealloc(Reader *self) {
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    if (self->client != NULL) {
        let_go(self);
        client_release(self->client);
    }
    Py_XDECREF(self->topics);
    Py_XDECREF(self->owner);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

/* Send the records of a partition into the queue. With the lock held. */
static int route(struct client *client, const char *topic, int partition) {
    rd_kafka_queue_t *queue = rd.queue_get_partition(client->handle, topic, partition);
    if (queue == NULL)
        return -1;
    rd.queue_forward(queue, client->queue);
    rd.queue_destroy(queue);
    return 0;
}

/* Return the different topics of a list of partitions. */
static PyObject *topics_of(PyObject *partitions) {
    PyObject *topics = PyDict_New();
    for (Py_ssize_t index = 0; topics != NULL && index < PyList_Size(partitions); index++) {
        const char *topic;
        int number;
        PyObject *name;
        if (!PyArg_ParseTuple(PyList_GetItem(partitions, index), "si", &topic, &number) ||
            (name = PyTuple_GetItem(PyList_GetItem(partitions, index), 0)) == NULL ||
            PyDict_SetItem(topics, name, Py_None) < 0)
            Py_CLEAR(topics);
    }
    if (topics == NULL)
        return NULL;
    PyObject *names = PyDict_Keys(topics);
    PyObject *made = names == NULL ? NULL : PyList_AsTuple(names);
    Py_XDECREF(names);
    Py_DECREF(topics);
    return made;
}

static PyObject *follow(Reader *self, PyObject *args) {
    PyObject *owner, *partitions;
    if (!PyArg_ParseTuple(args, "OO", &owner, &partitions))
        return NULL;
    if (!PyList_Check(partitions))
        return PyErr_Format(PyExc_TypeError, "the partitions must be a list of (topic, number)");
    PyObject *topics = topics_of(partitions);
    if (topics == NULL)
        return NULL;
    if (self->owner != NULL) {
        Py_DECREF(topics);
        return PyErr_Format(PyExc_RuntimeError, "a reader follows one consumer, once");
    }
    Py_DECREF(self->topics);
    self->topics = topics;
    self->owner = Py_NewRef(owner);
    const char *failed = NULL;
    client_lock(self->client);
    if (self->client->handle == NULL || rd.type(self->client->handle) != RD_CONSUMER) {
        failed = "no consumer has joined this reader";
    } else if ((self->client->queue = rd.queue_new(self->client->handle)) == NULL) {
        failed = "librdkafka made no queue";
    }
    for (Py_ssize_t index = 0; failed == NULL && index < PyList_Size(partitions); index++) {
        const char *topic;
        int number;
        if (!PyArg_ParseTuple(PyList_GetItem(partitions, index), "si", &topic, &number) ||
            route(self->client, topic, number) < 0)
            failed = "librdkafka has no queue for a partition";
    }
    pthread_mutex_unlock(&self->client->lock);
    if (failed != NULL)
        return PyErr_Format(PyExc_RuntimeError, "%s", failed);
    Py_RETURN_NONE;
}

/* Wait until so many have come or the time to fill is over; where none came, for the first of them, but no further. */
static Py_ssize_t take_messages(rd_kafka_queue_t *queue, Py_ssize_t most, int fill_ms, int wait_ms,
                                rd_kafka_message_t **messages) {
    ssize_t count = rd.consume_batch_queue(queue, fill_ms, messages, (size_t)most);
    if (count != 0 || wait_ms == 0)
        return count;
    count = rd.consume_batch_queue(queue, wait_ms, messages, 1);
    if (count != 1 || most == 1)
        return count;
    ssize_t more = rd.consume_batch_queue(queue, 0, messages + 1, (size_t)most - 1);
    return more < 0 ? count : count + more;
}

static PyObject *read_records(Reader *self, PyObject *args) {
    Py_ssize_t most, count = -1;
    int fill_ms, wait_ms;
    if (!PyArg_ParseTuple(args, "nii", &most, &fill_ms, &wait_ms))
        return NULL;
    if (most < 1 || most > MOST_RECORDS || fill_ms < 0 || wait_ms < 0)
        return PyErr_Format(PyExc_ValueError, "from 1 to %d records can be read, and no time is negative", MOST_RECORDS);
    rd_kafka_message_t **messages = malloc((size_t)most * sizeof *messages);
    if (messages == NULL)
        return PyErr_NoMemory();
    Py_BEGIN_ALLOW_THREADS;
    pthread_mutex_lock(&self->client->lock);
    if (self->client->queue != NULL)
        count = take_messages(self->client->queue, most, fill_ms, wait_ms, messages);
    Py_END_ALLOW_THREADS;
    PyObject *records = NULL;
    if (count >= 0) {
        records = records_new(messages, count, self->topics);
        Py_BEGIN_ALLOW_THREADS;
        for (Py_ssize_t index = 0; index < count; index++)
            rd.message_destroy(messages[index]);
        Py_END_ALLOW_THREADS;
    }
    int is_open = self->client->queue != NULL;
    pthread_mutex_unlock(&self->client->lock);
    free(messages);
    if (count < 0)
        PyErr_Format(PyExc_RuntimeError, "%s", is_open ? rd.err2str(rd.last_error()) : "the reader is closed");
    return records;
}

static PyObject *close_reader(Reader *self, PyObject *nothing) {
    (void)nothing;
    let_go(self);
    Py_CLEAR(self->owner);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"follow", (PyCFunction)follow, METH_VARARGS,
     "follow(consumer, partitions)\n--\n\nRead these partitions of the consumer that has this reader's number, (topic, "
     "number) each: to be called once, before it is assigned them. Those that it is assigned again are not read."},
    {"read", (PyCFunction)read_records, METH_VARARGS,
     "read(most, fill_ms, wait_ms)\n--\n\nReturn what came until there is so much of it or the time to fill is over; "
     "where nothing did, what comes first within the time to wait."},
    {"close", (PyCFunction)close_reader, METH_NOARGS,
     "close()\n--\n\nLet go of the consumer, before it is closed. Nothing can be read any more."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    {"number", T_LONGLONG, offsetof(Reader, number), READONLY, "The value of the consumer's setting for it."},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot type_slots[] = {
    {Py_tp_doc, "Reads the partitions of one consumer of confluent-kafka."},
    {Py_tp_new, reader_new},
    {Py_tp_dealloc, reader_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {0, NULL},
};

static PyType_Spec type_spec = {
    .name = "twopc.kafka.native._batches.Reader",
    .basicsize = sizeof(Reader),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = type_slots,
};

int reader_add_type(PyObject *module) {
    PyObject *type = PyType_FromSpec(&type_spec);
    if (type == NULL)
        return -1;
    int failed = PyModule_AddObjectRef(module, "Reader", type);
    Py_DECREF(type);
    return failed;
}
