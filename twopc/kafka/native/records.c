/* Records as they were read: each column is made when somebody asks for it, as objects or as Arrow has it. */
#include "module.h"

#include <structmember.h>

#include <stdlib.h>
#include <string.h>

/* A column of keys or values as Arrow has it. The pointers are into the objects of bytes. */
struct packed {
    PyObject *data, *offsets, *validity;
    char *bytes, *ends, *valid;
    Py_ssize_t there; /* how many are not none */
    int is_wide;      /* the offsets have 64 bits: there is more than Arrow's can say, which have 32 */
};

struct row {
    int64_t offset;
    int32_t partition;
    int32_t topic;      /* its index among the topics */
    int timestamp_type; /* 0 for none */
};

typedef struct {
    PyObject_HEAD
    PyObject *topics;  /* a tuple of names */
    PyObject *headers; /* a list, or None where no record has any */
    PyObject *errors;  /* a list of (code, text, topic, partition, offset) */
    PyObject *times;   /* bytes: 64 bits each */
    char *stamps;      /* into them */
    int is_timed;      /* each is a time that librdkafka writes as it is */
    struct packed keys_packed, values_packed;
    struct row *rows;
    Py_ssize_t count;
    Py_ssize_t size; /* bytes of all values */
} Records;

/* What Kafka stores of a record that has no timestamp, and what librdkafka takes for now when it writes. */
enum { NO_TIMESTAMP = -1, NOW = 0 };

static PyTypeObject *records_type;

static PyObject *bytes_or_none(const void *data, Py_ssize_t length) {
    if (data == NULL)
        return Py_NewRef(Py_None);
    return PyBytes_FromStringAndSize(data, length);
}

/* Return the index of the topic of a message; -1 with an exception set if it is none that is read. */
static int32_t topic_index(PyObject *topics, const rd_kafka_message_t *message) {
    const char *wanted = message->rkt == NULL ? "" : rd.topic_name(message->rkt);
    Py_ssize_t count = PyTuple_Size(topics);
    for (Py_ssize_t index = 0; index < count; index++) {
        const char *name = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(topics, index), NULL);
        if (name == NULL)
            return -1;
        if (strcmp(name, wanted) == 0)
            return (int32_t)index;
    }
    PyErr_Format(PyExc_RuntimeError, "a record of topic %s was read, which is not assigned", wanted);
    return -1;
}

/* Return the headers as pairs of name and value; the names as bytes where one of them is no UTF-8. */
static PyObject *pairs_of(const rd_kafka_headers_t *headers, int is_text) {
    size_t count = rd.header_cnt(headers);
    PyObject *pairs = PyList_New((Py_ssize_t)count);
    for (size_t index = 0; pairs != NULL && index < count; index++) {
        const char *name;
        const void *value;
        size_t length;
        PyObject *pair = NULL;
        if (rd.header_get_all(headers, index, &name, &value, &length) != RD_OK) {
            PyErr_SetString(PyExc_RuntimeError, "a header that was counted isn't there");
        } else {
            PyObject *data = bytes_or_none(value, (Py_ssize_t)length);
            if (data != NULL)
                pair = Py_BuildValue(is_text ? "(sN)" : "(yN)", name, data);
        }
        if (pair == NULL) {
            Py_CLEAR(pairs);
        } else {
            PyList_SetItem(pairs, (Py_ssize_t)index, pair);
        }
    }
    if (pairs == NULL && is_text && PyErr_ExceptionMatches(PyExc_UnicodeDecodeError)) {
        PyErr_Clear();
        return pairs_of(headers, 0);
    }
    return pairs;
}

/* Note the headers of a message, where it has any. */
static int take_headers(Records *self, const rd_kafka_message_t *message, Py_ssize_t most) {
    rd_kafka_headers_t *headers;
    if (rd.message_headers(message, &headers) != RD_OK)
        return 0;
    if (self->headers == Py_None) {
        PyObject *column = PyList_New(most);
        if (column == NULL)
            return -1;
        for (Py_ssize_t index = 0; index < most; index++)
            PyList_SetItem(column, index, Py_NewRef(Py_None));
        Py_DECREF(self->headers);
        self->headers = column;
    }
    PyObject *pairs = pairs_of(headers, 1);
    return pairs == NULL ? -1 : PyList_SetItem(self->headers, self->count, pairs);
}

static int take_error(Records *self, const rd_kafka_message_t *message) {
    const char *text = rd.message_errstr(message);
    const char *topic = message->rkt == NULL ? "" : rd.topic_name(message->rkt);
    PyObject *error = Py_BuildValue("(issiL)", message->err, text == NULL ? "" : text, topic, (int)message->partition,
                                    (long long)message->offset);
    int failed = error == NULL || PyList_Append(self->errors, error) < 0;
    Py_XDECREF(error);
    return failed ? -1 : 0;
}

static size_t end_at(const struct packed *column, Py_ssize_t index) {
    int64_t wide;
    int32_t narrow;
    if (column->is_wide) {
        memcpy(&wide, column->ends + index * (Py_ssize_t)sizeof wide, sizeof wide);
        return (size_t)wide;
    }
    memcpy(&narrow, column->ends + index * (Py_ssize_t)sizeof narrow, sizeof narrow);
    return (size_t)narrow;
}

static void put_end(struct packed *column, Py_ssize_t index, size_t end) {
    int64_t wide = (int64_t)end;
    int32_t narrow = (int32_t)end;
    if (column->is_wide)
        memcpy(column->ends + index * (Py_ssize_t)sizeof wide, &wide, sizeof wide);
    else
        memcpy(column->ends + index * (Py_ssize_t)sizeof narrow, &narrow, sizeof narrow);
}

static int is_there(const struct packed *column, Py_ssize_t index) {
    return column->valid[index / 8] >> index % 8 & 1;
}

/* Make room for so many elements of so many bytes. */
static int packed_init(struct packed *column, Py_ssize_t count, size_t size) {
    column->is_wide = size > INT32_MAX;
    size_t width = column->is_wide ? sizeof(int64_t) : sizeof(int32_t);
    column->data = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
    column->offsets = PyBytes_FromStringAndSize(NULL, (count + 1) * (Py_ssize_t)width);
    column->validity = PyBytes_FromStringAndSize(NULL, (count + 7) / 8);
    if (column->data == NULL || column->offsets == NULL || column->validity == NULL)
        return -1;
    column->bytes = PyBytes_AsString(column->data);
    column->ends = PyBytes_AsString(column->offsets);
    column->valid = PyBytes_AsString(column->validity);
    memset(column->valid, 0, (size_t)(count + 7) / 8);
    put_end(column, 0, 0);
    return 0;
}

static void packed_free(struct packed *column) {
    Py_XDECREF(column->data);
    Py_XDECREF(column->offsets);
    Py_XDECREF(column->validity);
}

static void take_bytes(struct packed *column, Py_ssize_t index, const void *from, size_t length) {
    size_t end = end_at(column, index);
    if (from != NULL) {
        memcpy(column->bytes + end, from, length);
        column->valid[index / 8] |= (char)(1 << index % 8);
        column->there++;
        end += length;
    }
    put_end(column, index + 1, end);
}

static int take_record(Records *self, const rd_kafka_message_t *message, int32_t topic, Py_ssize_t most) {
    struct row *row = &self->rows[self->count];
    row->offset = message->offset;
    row->partition = message->partition;
    row->topic = topic;
    int64_t stamp = rd.message_timestamp(message, &row->timestamp_type);
    memcpy(self->stamps + self->count * (Py_ssize_t)sizeof stamp, &stamp, sizeof stamp);
    if (row->timestamp_type == 0 || stamp == NO_TIMESTAMP || stamp == NOW)
        self->is_timed = 0;
    take_bytes(&self->keys_packed, self->count, message->key, message->key_len);
    take_bytes(&self->values_packed, self->count, message->payload, message->len);
    if (take_headers(self, message, most) < 0)
        return -1;
    self->count++;
    return 0;
}

static int take_all(Records *self, rd_kafka_message_t **messages, Py_ssize_t count) {
    const rd_kafka_topic_t *last = NULL;
    int32_t topic = -1;
    for (Py_ssize_t index = 0; index < count; index++) {
        const rd_kafka_message_t *message = messages[index];
        if (message->err != RD_OK) {
            if (take_error(self, message) < 0)
                return -1;
            continue;
        }
        if (topic < 0 || message->rkt != last) {
            if ((topic = topic_index(self->topics, message)) < 0)
                return -1;
            last = message->rkt;
        }
        if (take_record(self, message, topic, count) < 0)
            return -1;
    }
    /* The column of headers was made for errors too. */
    return self->headers == Py_None ? 0 : PyList_SetSlice(self->headers, self->count, count, NULL);
}

static size_t length_of(const void *data, size_t length) {
    return data == NULL ? 0 : length;
}

PyObject *records_new(rd_kafka_message_t **messages, Py_ssize_t count, PyObject *topics) {
    size_t keys_length = 0, values_length = 0;
    for (Py_ssize_t index = 0; index < count; index++) {
        if (messages[index]->err != RD_OK)
            continue;
        keys_length += length_of(messages[index]->key, messages[index]->key_len);
        values_length += length_of(messages[index]->payload, messages[index]->len);
    }
    allocfunc allocate = (allocfunc)PyType_GetSlot(records_type, Py_tp_alloc);
    Records *self = (Records *)allocate(records_type, 0);
    if (self == NULL)
        return NULL;
    self->topics = Py_NewRef(topics);
    self->headers = Py_NewRef(Py_None);
    self->errors = PyList_New(0);
    self->times = PyBytes_FromStringAndSize(NULL, count * (Py_ssize_t)sizeof(int64_t));
    self->is_timed = 1;
    self->rows = malloc((size_t)count * sizeof *self->rows + 1);
    self->size = (Py_ssize_t)values_length;
    if (self->errors == NULL || self->times == NULL || self->rows == NULL ||
        packed_init(&self->keys_packed, count, keys_length) < 0 ||
        packed_init(&self->values_packed, count, values_length) < 0) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    self->stamps = PyBytes_AsString(self->times);
    if (take_all(self, messages, count) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static void records_dealloc(Records *self) {
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    Py_XDECREF(self->topics);
    Py_XDECREF(self->headers);
    Py_XDECREF(self->errors);
    Py_XDECREF(self->times);
    packed_free(&self->keys_packed);
    packed_free(&self->values_packed);
    free(self->rows);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static Py_ssize_t records_length(Records *self) {
    return self->count;
}

static PyObject *object_of(const struct packed *column, Py_ssize_t index) {
    size_t start = end_at(column, index);
    return bytes_or_none(is_there(column, index) ? column->bytes + start : NULL,
                         (Py_ssize_t)(end_at(column, index + 1) - start));
}

static PyObject *key_of(Records *self, Py_ssize_t index) {
    return object_of(&self->keys_packed, index);
}

static PyObject *value_of(Records *self, Py_ssize_t index) {
    return object_of(&self->values_packed, index);
}

static int64_t stamp_at(const Records *self, Py_ssize_t index) {
    int64_t stamp;
    memcpy(&stamp, self->stamps + index * (Py_ssize_t)sizeof stamp, sizeof stamp);
    return stamp;
}

static PyObject *partition_of(Records *self, Py_ssize_t index) {
    return PyLong_FromLong(self->rows[index].partition);
}

static PyObject *place_of(Records *self, Py_ssize_t index) {
    const struct row *row = &self->rows[index];
    return Py_BuildValue("(OiL)", PyTuple_GetItem(self->topics, row->topic), (int)row->partition, (long long)row->offset);
}

/* Kafka has -1 for no timestamp, whatever type is said. */
static PyObject *time_of(Records *self, Py_ssize_t index) {
    int64_t stamp = stamp_at(self, index);
    return self->rows[index].timestamp_type == 0 || stamp == NO_TIMESTAMP ? Py_NewRef(Py_None) : PyLong_FromLongLong(stamp);
}

static PyObject *timestamp_of(Records *self, Py_ssize_t index) {
    return Py_BuildValue("(iL)", self->rows[index].timestamp_type, (long long)stamp_at(self, index));
}

/* Which rows: all, or those that a list has the indices of. Return how many; -1 with an exception set. */
static Py_ssize_t chosen_count(Records *self, PyObject *indices) {
    if (indices == Py_None)
        return self->count;
    if (PyList_Check(indices))
        return PyList_Size(indices);
    PyErr_SetString(PyExc_TypeError, "the indices must be a list, or None for all");
    return -1;
}

/* Return the index of one of the chosen rows; -1 with an exception set where there is none. */
static Py_ssize_t chosen(Records *self, PyObject *indices, Py_ssize_t number) {
    if (indices == Py_None)
        return number;
    /* An integer is asked for nothing that could change the list. */
    PyObject *index = PyList_GetItem(indices, number);
    Py_ssize_t at = index != NULL && PyLong_Check(index) ? PyLong_AsSsize_t(index) : -1;
    if (at >= 0 && at < self->count)
        return at;
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_IndexError, "there is no record of this number");
    return -1;
}

static PyObject *column(Records *self, PyObject *indices, PyObject *(*element)(Records *, Py_ssize_t)) {
    Py_ssize_t count = chosen_count(self, indices);
    PyObject *list = count < 0 ? NULL : PyList_New(count);
    for (Py_ssize_t number = 0; list != NULL && number < count; number++) {
        Py_ssize_t at = chosen(self, indices, number);
        PyObject *made = at < 0 ? NULL : element(self, at);
        if (made == NULL) {
            Py_CLEAR(list);
        } else {
            PyList_SetItem(list, number, made);
        }
    }
    return list;
}

static PyObject *one(Records *self, PyObject *number, PyObject *(*element)(Records *, Py_ssize_t)) {
    Py_ssize_t index = PyLong_AsSsize_t(number);
    if (index == -1 && PyErr_Occurred())
        return NULL;
    if (index < 0 || index >= self->count) {
        PyErr_SetString(PyExc_IndexError, "there is no record of this number");
        return NULL;
    }
    return element(self, index);
}

/* Return a column of so many as Arrow has it: length, start, validity, offsets, data; None where it can't. A column of
 * nothing has no type. */
static PyObject *arrow(const struct packed *column, Py_ssize_t count) {
    if (column->is_wide || column->there == 0)
        Py_RETURN_NONE;
    PyObject *validity = column->there == count ? Py_None : column->validity;
    return Py_BuildValue("(niOOO)", count, 0, validity, column->offsets, column->data);
}

/* Return how many bytes the chosen rows have; -1 with an exception set. */
static Py_ssize_t size_of(Records *self, const struct packed *column, PyObject *indices, Py_ssize_t count) {
    size_t size = 0;
    for (Py_ssize_t number = 0; number < count; number++) {
        Py_ssize_t at = chosen(self, indices, number);
        if (at < 0)
            return -1;
        size += end_at(column, at + 1) - end_at(column, at);
    }
    return (Py_ssize_t)size;
}

static PyObject *packed(Records *self, const struct packed *column, PyObject *indices) {
    Py_ssize_t count = chosen_count(self, indices);
    if (count < 0 || indices == Py_None)
        return count < 0 ? NULL : arrow(column, count);
    struct packed some = {0};
    PyObject *made = NULL;
    Py_ssize_t size = size_of(self, column, indices, count);
    if (size >= 0 && packed_init(&some, count, (size_t)size) == 0) {
        for (Py_ssize_t number = 0; number < count; number++) {
            Py_ssize_t at = chosen(self, indices, number);
            size_t start = end_at(column, at);
            take_bytes(&some, number, is_there(column, at) ? column->bytes + start : NULL,
                       end_at(column, at + 1) - start);
        }
        made = arrow(&some, count);
    }
    packed_free(&some);
    return made;
}

static PyObject *packed_keys(Records *self, PyObject *indices) {
    return packed(self, &self->keys_packed, indices);
}

static PyObject *packed_values(Records *self, PyObject *indices) {
    return packed(self, &self->values_packed, indices);
}

static PyObject *packed_times(Records *self, PyObject *indices) {
    Py_ssize_t count = chosen_count(self, indices);
    if (count < 0)
        return NULL;
    if (!self->is_timed)
        Py_RETURN_NONE;
    if (indices == Py_None)
        return Py_BuildValue("(niOOO)", count, 0, Py_None, Py_None, self->times);
    PyObject *data = PyBytes_FromStringAndSize(NULL, count * (Py_ssize_t)sizeof(int64_t));
    for (Py_ssize_t number = 0; data != NULL && number < count; number++) {
        Py_ssize_t at = chosen(self, indices, number);
        if (at < 0) {
            Py_DECREF(data);
            return NULL;
        }
        int64_t stamp = stamp_at(self, at);
        memcpy(PyBytes_AsString(data) + number * (Py_ssize_t)sizeof stamp, &stamp, sizeof stamp);
    }
    return data == NULL ? NULL : Py_BuildValue("(niOON)", count, 0, Py_None, Py_None, data);
}

#define COLUMN(name, element)                                                                                          \
    static PyObject *name(Records *self, PyObject *indices) {                                                          \
        return column(self, indices, element);                                                                         \
    }
#define ONE(name, element)                                                                                             \
    static PyObject *name(Records *self, PyObject *number) {                                                           \
        return one(self, number, element);                                                                             \
    }
COLUMN(values, value_of)
COLUMN(keys, key_of)
COLUMN(partitions, partition_of)
COLUMN(places, place_of)
COLUMN(times, time_of)
ONE(value, value_of)
ONE(key, key_of)
ONE(place, place_of)
ONE(timestamp, timestamp_of)

static PyMethodDef methods[] = {
    /* The columns: of the records that a list has the indices of, None for all. */
    {"values", (PyCFunction)values, METH_O, "values(indices)\n--\n\nReturn the values, bytes or None."},
    {"keys", (PyCFunction)keys, METH_O, "keys(indices)\n--\n\nReturn the keys, bytes or None."},
    {"partitions", (PyCFunction)partitions, METH_O,
     "partitions(indices)\n--\n\nReturn the numbers of the partitions."},
    {"places", (PyCFunction)places, METH_O, "places(indices)\n--\n\nReturn topic, partition and offset of each."},
    {"times", (PyCFunction)times, METH_O,
     "times(indices)\n--\n\nReturn Unix milliseconds, None where there are none."},
    {"packed_keys", (PyCFunction)packed_keys, METH_O,
     "packed_keys(indices)\n--\n\nReturn the keys as Arrow has them: how many, the first, validity or None for all, "
     "offsets, data. None where there is no key, or too much of them."},
    {"packed_values", (PyCFunction)packed_values, METH_O,
     "packed_values(indices)\n--\n\nReturn the values likewise."},
    {"packed_times", (PyCFunction)packed_times, METH_O,
     "packed_times(indices)\n--\n\nReturn Unix milliseconds likewise, without offsets; None where one that was read has "
     "none, or 0, which librdkafka would write as now."},
    {"value", (PyCFunction)value, METH_O, "value(index)\n--\n\nReturn the value of one record."},
    {"key", (PyCFunction)key, METH_O, "key(index)\n--\n\nReturn the key of one record."},
    {"place", (PyCFunction)place, METH_O, "place(index)\n--\n\nReturn topic, partition and offset of one record."},
    {"timestamp", (PyCFunction)timestamp, METH_O,
     "timestamp(index)\n--\n\nReturn the type of one record's timestamp, 0 for none, and the timestamp."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    {"headers", T_OBJECT_EX, offsetof(Records, headers), READONLY,
     "Of each record a list of (name, value), or None; None for all where no record has any. A name is bytes in a "
     "record that has a name that is no UTF-8."},
    {"errors", T_OBJECT_EX, offsetof(Records, errors), READONLY,
     "What was read but is no record: code, text, topic, partition and offset of each."},
    {"size", T_PYSSIZET, offsetof(Records, size), READONLY, "How many bytes the values have."},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot type_slots[] = {
    {Py_tp_doc, "Records as they were read."},
    {Py_tp_dealloc, records_dealloc},
    {Py_sq_length, records_length},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {0, NULL},
};

static PyType_Spec type_spec = {
    .name = "twopc.kafka.native._batches.Records",
    .basicsize = sizeof(Records),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = type_slots,
};

int records_add_type(PyObject *module) {
    records_type = (PyTypeObject *)PyType_FromSpec(&type_spec);
    return records_type == NULL ? -1 : PyModule_AddObjectRef(module, "Records", (PyObject *)records_type);
}
