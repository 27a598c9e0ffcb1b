/* twopc.serde._avro: columns of Avro's binary form to and from Python's values. What is unusual in any way is not taken:
 * the types in Python read or write it then, or say what is wrong with it. Python's limited API only. */
#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NODES = 10000, MOST_DEPTH = 200 };

enum kind { NOTHING, BOOLEAN, INT, LONG, FLOAT, DOUBLE, BYTES, STRING, FIXED, ENUM, UNION, RECORD, LOGICAL, ARRAY, MAP };

/* By the number of its kind. */
static const char *const KINDS[] = {"null",   "boolean", "int",  "long",  "float",  "double", "bytes",
                                    "string", "fixed",   "enum", "union", "record", "logical", "array", "map"};

/* A type. Objects are in `objects`: an enum's symbols and their numbers, a record's names, what a logical type's value
 * is restored and prepared by, a union's branches by Python's types and what has a value know each of its branches. */
struct node {
    enum kind kind;
    Py_ssize_t count; /* of the parts, or of a fixed one's bytes */
    struct node *parts;
    PyObject *objects;
};

typedef struct {
    PyObject_HEAD
    struct node root;
} Codec;

/* What is left of the bytes of a value. */
struct input {
    const unsigned char *at, *end;
};

struct output {
    unsigned char *data;
    size_t length, room;
};

/* Reading: NULL for what is not taken, with or without an exception. */

static PyObject *read_value(const struct node *node, struct input *input);

static int read_long(struct input *input, int64_t *number) {
    uint64_t bits = 0;
    for (int shift = 0; shift < 64 && input->at < input->end; shift += 7) {
        unsigned char byte = *input->at++;
        if (shift == 63 && byte > 1)
            return 0;
        bits |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80) {
            *number = (int64_t)(bits >> 1) ^ -(int64_t)(bits & 1);
            return 1;
        }
    }
    return 0;
}

/* Take so many bytes; NULL where there are fewer. */
static const unsigned char *take(struct input *input, int64_t length) {
    if (length < 0 || length > input->end - input->at)
        return NULL;
    const unsigned char *taken = input->at;
    input->at += length;
    return taken;
}

/* Take bytes that have their length before them. */
static const unsigned char *take_piece(struct input *input, int64_t *length) {
    return read_long(input, length) ? take(input, *length) : NULL;
}

static uint64_t little_endian(const unsigned char *data, int size) {
    uint64_t bits = 0;
    for (int index = 0; index < size; index++)
        bits |= (uint64_t)data[index] << 8 * index;
    return bits;
}

static PyObject *read_number(enum kind kind, struct input *input) {
    int64_t number;
    if (!read_long(input, &number) || (kind == INT && (number < INT32_MIN || number > INT32_MAX)))
        return NULL;
    return PyLong_FromLongLong(number);
}

static PyObject *read_real(enum kind kind, struct input *input) {
    const unsigned char *data = take(input, kind == FLOAT ? 4 : 8);
    if (data == NULL)
        return NULL;
    if (kind == FLOAT) {
        uint32_t bits = (uint32_t)little_endian(data, 4);
        float real;
        memcpy(&real, &bits, sizeof real);
        /* A signalling NaN would become a quiet one. */
        return isnan(real) && !(bits & 0x400000) ? NULL : PyFloat_FromDouble(real);
    }
    uint64_t bits = little_endian(data, 8);
    double real;
    memcpy(&real, &bits, sizeof real);
    return PyFloat_FromDouble(real);
}

static PyObject *read_boolean(struct input *input) {
    const unsigned char *data = take(input, 1);
    return data == NULL || *data > 1 ? NULL : PyBool_FromLong(*data);
}

static PyObject *read_piece(enum kind kind, struct input *input) {
    int64_t length;
    const unsigned char *data = take_piece(input, &length);
    if (data == NULL)
        return NULL;
    return kind == STRING ? PyUnicode_DecodeUTF8((const char *)data, (Py_ssize_t)length, NULL)
                          : PyBytes_FromStringAndSize((const char *)data, (Py_ssize_t)length);
}

static PyObject *read_fixed(const struct node *node, struct input *input) {
    const unsigned char *data = take(input, node->count);
    return data == NULL ? NULL : PyBytes_FromStringAndSize((const char *)data, node->count);
}

static PyObject *read_enum(const struct node *node, struct input *input) {
    int64_t number;
    PyObject *symbols = PyTuple_GetItem(node->objects, 0);
    if (!read_long(input, &number) || number < 0 || number >= PyTuple_Size(symbols))
        return NULL;
    return Py_NewRef(PyTuple_GetItem(symbols, (Py_ssize_t)number));
}

/* A value that doesn't tell its branch is made to know it. */
static PyObject *read_union(const struct node *node, struct input *input) {
    int64_t number;
    if (!read_long(input, &number) || number < 0 || number >= node->count)
        return NULL;
    PyObject *value = read_value(&node->parts[number], input);
    PyObject *mark = PyTuple_GetItem(PyTuple_GetItem(node->objects, 1), (Py_ssize_t)number);
    if (value == NULL || mark == Py_None)
        return value;
    PyObject *marked = PyObject_CallFunctionObjArgs(mark, value, NULL);
    Py_DECREF(value);
    return marked;
}

static PyObject *read_record(const struct node *node, struct input *input) {
    PyObject *record = PyDict_New();
    for (Py_ssize_t index = 0; record != NULL && index < node->count; index++) {
        PyObject *value = read_value(&node->parts[index], input);
        if (value == NULL || PyDict_SetItem(record, PyTuple_GetItem(node->objects, index), value) < 0)
            Py_CLEAR(record);
        Py_XDECREF(value);
    }
    return record;
}

/* Take the number of elements in the next block. Of elements without bytes there may be more than bytes are left. */
static int read_count(struct input *input, int64_t *count) {
    return read_long(input, count) && *count >= 0 && *count <= input->end - input->at;
}

static PyObject *read_array(const struct node *node, struct input *input) {
    PyObject *elements = PyList_New(0);
    int64_t count;
    while (elements != NULL) {
        if (!read_count(input, &count))
            Py_CLEAR(elements);
        else if (count == 0)
            break;
        while (elements != NULL && count-- > 0) {
            PyObject *element = read_value(node->parts, input);
            if (element == NULL || PyList_Append(elements, element) < 0)
                Py_CLEAR(elements);
            Py_XDECREF(element);
        }
    }
    return elements;
}

/* Read an element of a map; 0 for one whose key is there. */
static int read_entry(const struct node *node, struct input *input, PyObject *entries) {
    PyObject *key = read_piece(STRING, input), *value = key == NULL ? NULL : read_value(node->parts, input);
    Py_ssize_t before = PyDict_Size(entries);
    int taken = value != NULL && PyDict_SetItem(entries, key, value) == 0 && PyDict_Size(entries) > before;
    Py_XDECREF(key);
    Py_XDECREF(value);
    return taken;
}

static PyObject *read_map(const struct node *node, struct input *input) {
    PyObject *entries = PyDict_New();
    int64_t count;
    while (entries != NULL) {
        if (!read_count(input, &count))
            Py_CLEAR(entries);
        else if (count == 0)
            break;
        while (entries != NULL && count-- > 0)
            if (!read_entry(node, input, entries))
                Py_CLEAR(entries);
    }
    return entries;
}

/* Restore what a logical type stands for. */
static PyObject *read_logical(const struct node *node, struct input *input) {
    PyObject *value = read_value(node->parts, input);
    if (value == NULL)
        return NULL;
    PyObject *restored = PyObject_CallFunctionObjArgs(PyTuple_GetItem(node->objects, 0), value, NULL);
    Py_DECREF(value);
    return restored;
}

static PyObject *read_value(const struct node *node, struct input *input) {
    switch (node->kind) {
    case NOTHING:
        return Py_NewRef(Py_None);
    case BOOLEAN:
        return read_boolean(input);
    case INT:
    case LONG:
        return read_number(node->kind, input);
    case FLOAT:
    case DOUBLE:
        return read_real(node->kind, input);
    case BYTES:
    case STRING:
        return read_piece(node->kind, input);
    case FIXED:
        return read_fixed(node, input);
    case ENUM:
        return read_enum(node, input);
    case UNION:
        return read_union(node, input);
    case RECORD:
        return read_record(node, input);
    case LOGICAL:
        return read_logical(node, input);
    case ARRAY:
        return read_array(node, input);
    case MAP:
        return read_map(node, input);
    }
    return NULL;
}

/* Writing: 0 for what is not taken, with or without an exception. */

static int write_value(const struct node *node, PyObject *value, struct output *output);

static int put(struct output *output, const void *data, size_t length) {
    if (length > output->room - output->length) {
        size_t room = (output->length + length) * 2;
        unsigned char *larger = realloc(output->data, room);
        if (larger == NULL)
            return 0;
        output->data = larger;
        output->room = room;
    }
    if (length > 0)
        memcpy(output->data + output->length, data, length);
    output->length += length;
    return 1;
}

static int put_long(struct output *output, int64_t number) {
    uint64_t bits = (uint64_t)number << 1 ^ (number < 0 ? UINT64_MAX : 0);
    unsigned char bytes[10];
    size_t length = 0;
    for (; bits >= 0x80; bits >>= 7)
        bytes[length++] = (unsigned char)(bits | 0x80);
    bytes[length++] = (unsigned char)bits;
    return put(output, bytes, length);
}

static int put_little_endian(struct output *output, uint64_t bits, int size) {
    unsigned char bytes[8];
    for (int index = 0; index < size; index++)
        bytes[index] = (unsigned char)(bits >> 8 * index);
    return put(output, bytes, (size_t)size);
}

static int put_piece(struct output *output, const char *data, Py_ssize_t length) {
    return data != NULL && put_long(output, length) && put(output, data, (size_t)length);
}

static int write_boolean(PyObject *value, struct output *output) {
    return PyBool_Check(value) && put(output, value == Py_True ? "\1" : "\0", 1);
}

static int write_number(enum kind kind, PyObject *value, struct output *output) {
    int overflow;
    if (!PyLong_CheckExact(value))
        return 0;
    long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow != 0 || (kind == INT && (number < INT32_MIN || number > INT32_MAX)))
        return 0;
    return put_long(output, number);
}

static int write_real(enum kind kind, PyObject *value, struct output *output) {
    if (!PyFloat_CheckExact(value))
        return 0;
    double real = PyFloat_AsDouble(value);
    if (real == -1.0 && PyErr_Occurred())
        return 0;
    if (kind == FLOAT) {
        float single = (float)real;
        uint32_t bits;
        memcpy(&bits, &single, sizeof bits);
        return !(isinf(single) && !isinf(real)) && put_little_endian(output, bits, 4);
    }
    uint64_t bits;
    memcpy(&bits, &real, sizeof bits);
    return put_little_endian(output, bits, 8);
}

static int write_text(PyObject *value, struct output *output) {
    Py_ssize_t length;
    const char *data = PyUnicode_CheckExact(value) ? PyUnicode_AsUTF8AndSize(value, &length) : NULL;
    return data != NULL && put_piece(output, data, length);
}

static int write_bytes(PyObject *value, struct output *output) {
    return PyBytes_CheckExact(value) && put_piece(output, PyBytes_AsString(value), PyBytes_Size(value));
}

static int write_fixed(const struct node *node, PyObject *value, struct output *output) {
    return PyBytes_CheckExact(value) && PyBytes_Size(value) == node->count &&
           put(output, PyBytes_AsString(value), (size_t)node->count);
}

static int write_enum(const struct node *node, PyObject *value, struct output *output) {
    if (!PyUnicode_CheckExact(value))
        return 0;
    PyObject *number = PyDict_GetItemWithError(PyTuple_GetItem(node->objects, 1), value);
    return number != NULL && write_number(LONG, number, output);
}

/* Where the type of a value doesn't say its branch, it is not taken. */
static int write_union(const struct node *node, PyObject *value, struct output *output) {
    PyObject *number = PyDict_GetItemWithError(PyTuple_GetItem(node->objects, 0), (PyObject *)Py_TYPE(value));
    Py_ssize_t chosen = number == NULL ? -1 : PyLong_AsSsize_t(number);
    return chosen >= 0 && chosen < node->count && put_long(output, chosen) &&
           write_value(&node->parts[chosen], value, output);
}

/* What prepares a logical type's value may be anything, and may change what an element is of: it is held meanwhile. */
static int write_held(const struct node *node, PyObject *value, struct output *output) {
    Py_INCREF(value);
    int taken = write_value(node, value, output);
    Py_DECREF(value);
    return taken;
}

static int write_array(const struct node *node, PyObject *value, struct output *output) {
    if (!PyList_CheckExact(value))
        return 0;
    Py_ssize_t count = PyList_Size(value);
    if (count > 0 && !put_long(output, count))
        return 0;
    for (Py_ssize_t index = 0; index < count; index++)
        if (PyList_Size(value) != count || !write_held(node->parts, PyList_GetItem(value, index), output))
            return 0;
    return put_long(output, 0);
}

static int write_map(const struct node *node, PyObject *value, struct output *output) {
    PyObject *key, *element;
    Py_ssize_t place = 0, count = PyDict_CheckExact(value) ? PyDict_Size(value) : -1;
    if (count < 0 || (count > 0 && !put_long(output, count)))
        return 0;
    for (Py_ssize_t index = 0; index < count; index++)
        if (PyDict_Size(value) != count || !PyDict_Next(value, &place, &key, &element) || !write_text(key, output) ||
            !write_held(node->parts, element, output))
            return 0;
    return put_long(output, 0);
}

/* With as many fields as there are, and each of those, there is no other. */
static int write_record(const struct node *node, PyObject *value, struct output *output) {
    if (!PyDict_CheckExact(value) || PyDict_Size(value) != node->count)
        return 0;
    for (Py_ssize_t index = 0; index < node->count; index++) {
        PyObject *field = PyDict_GetItemWithError(value, PyTuple_GetItem(node->objects, index));
        if (field == NULL || !write_held(&node->parts[index], field, output))
            return 0;
    }
    return 1;
}

static int write_logical(const struct node *node, PyObject *value, struct output *output) {
    PyObject *prepared = PyObject_CallFunctionObjArgs(PyTuple_GetItem(node->objects, 1), value, NULL);
    int taken = prepared != NULL && write_value(node->parts, prepared, output);
    Py_XDECREF(prepared);
    return taken;
}

static int write_value(const struct node *node, PyObject *value, struct output *output) {
    switch (node->kind) {
    case NOTHING:
        return value == Py_None;
    case BOOLEAN:
        return write_boolean(value, output);
    case INT:
    case LONG:
        return write_number(node->kind, value, output);
    case FLOAT:
    case DOUBLE:
        return write_real(node->kind, value, output);
    case BYTES:
        return write_bytes(value, output);
    case STRING:
        return write_text(value, output);
    case FIXED:
        return write_fixed(node, value, output);
    case ENUM:
        return write_enum(node, value, output);
    case UNION:
        return write_union(node, value, output);
    case RECORD:
        return write_record(node, value, output);
    case LOGICAL:
        return write_logical(node, value, output);
    case ARRAY:
        return write_array(node, value, output);
    case MAP:
        return write_map(node, value, output);
    }
    return 0;
}

/* The types. */

static void clear(struct node *node) {
    for (Py_ssize_t index = 0; node->parts != NULL && index < node->count; index++)
        clear(&node->parts[index]);
    free(node->parts);
    Py_CLEAR(node->objects);
    node->parts = NULL;
}

static int refuse_plan(void) {
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError, "this is no plan of an Avro schema");
    return -1;
}

static int take_plan(struct node *node, PyObject *plan, Py_ssize_t *nodes, int depth);

/* Take the plans of a node's parts. */
static int take_parts(struct node *node, PyObject *plans, Py_ssize_t *nodes, int depth) {
    Py_ssize_t count = PyTuple_Size(plans);
    /* A type that is named in many places is there many times. */
    if (count < 0 || (*nodes += count) > MOST_NODES || depth > MOST_DEPTH)
        return refuse_plan();
    if ((node->parts = calloc((size_t)count + 1, sizeof *node->parts)) == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    node->count = count;
    for (Py_ssize_t index = 0; index < count; index++)
        if (take_plan(&node->parts[index], PyTuple_GetItem(plans, index), nodes, depth + 1) < 0)
            return -1;
    return 0;
}

/* Whether the objects are what is done with them without asking again. */
static int fits(const struct node *node) {
    PyObject *objects = node->objects;
    switch (node->kind) {
    case ENUM:
        return PyTuple_Size(objects) == 2 && PyTuple_Check(PyTuple_GetItem(objects, 0)) &&
               PyDict_Check(PyTuple_GetItem(objects, 1));
    case RECORD:
        return PyTuple_Size(objects) == node->count;
    case LOGICAL:
        return PyTuple_Size(objects) == 2 && node->count == 1;
    case ARRAY:
    case MAP:
        return node->count == 1;
    case UNION:
        return PyTuple_Size(objects) == 2 && PyDict_Check(PyTuple_GetItem(objects, 0)) &&
               PyTuple_Check(PyTuple_GetItem(objects, 1)) && PyTuple_Size(PyTuple_GetItem(objects, 1)) == node->count;
    default:
        return 1;
    }
}

/* Take a tuple of the name of a kind, the plans of its parts, the size of a fixed one, and its objects. */
static int take_plan(struct node *node, PyObject *plan, Py_ssize_t *nodes, int depth) {
    const char *name;
    PyObject *plans, *objects;
    Py_ssize_t size;
    if (!PyTuple_Check(plan) ||
        !PyArg_ParseTuple(plan, "sO!nO!", &name, &PyTuple_Type, &plans, &size, &PyTuple_Type, &objects))
        return refuse_plan();
    size_t kind = 0;
    while (kind < sizeof KINDS / sizeof *KINDS && strcmp(KINDS[kind], name) != 0)
        kind++;
    if (kind == sizeof KINDS / sizeof *KINDS || size < 0)
        return refuse_plan();
    node->kind = (enum kind)kind;
    node->objects = Py_NewRef(objects);
    if (node->kind == FIXED) {
        node->count = size;
        return 0;
    }
    if (take_parts(node, plans, nodes, depth) < 0)
        return -1;
    return fits(node) ? 0 : refuse_plan();
}

static PyObject *codec_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *plan;
    Py_ssize_t nodes = 1;
    if (kwargs != NULL && PyDict_Size(kwargs) != 0)
        return PyErr_Format(PyExc_TypeError, "Codec takes no names of arguments");
    if (!PyArg_ParseTuple(args, "O", &plan))
        return NULL;
    Codec *self = (Codec *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (self != NULL && take_plan(&self->root, plan, &nodes, 0) < 0)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static void codec_dealloc(Codec *self) {
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    clear(&self->root);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

/* What stands before each value. */
struct head {
    const char *data;
    Py_ssize_t length;
};

static PyObject *read_element(const struct node *root, PyObject *element, struct head head, struct output *unused) {
    (void)unused;
    if (element == Py_None)
        return Py_NewRef(Py_None);
    if (!PyBytes_CheckExact(element) || PyBytes_Size(element) < head.length ||
        memcmp(PyBytes_AsString(element), head.data, (size_t)head.length) != 0)
        return NULL;
    const unsigned char *data = (const unsigned char *)PyBytes_AsString(element);
    struct input input = {data + head.length, data + PyBytes_Size(element)};
    PyObject *value = read_value(root, &input);
    if (value != NULL && input.at != input.end)
        Py_CLEAR(value);
    return value;
}

static PyObject *write_element(const struct node *root, PyObject *element, struct head head, struct output *output) {
    if (element == Py_None)
        return Py_NewRef(Py_None);
    output->length = 0;
    if (!put(output, head.data, (size_t)head.length) || !write_value(root, element, output))
        return NULL;
    return PyBytes_FromStringAndSize((const char *)output->data, (Py_ssize_t)output->length);
}

/* Code from `start` on, up to the first element that is not taken. */
static PyObject *code(Codec *self, PyObject *args,
                      PyObject *(*element)(const struct node *, PyObject *, struct head, struct output *)) {
    PyObject *column;
    Py_ssize_t start;
    struct head head;
    if (!PyArg_ParseTuple(args, "O!ny#", &PyList_Type, &column, &start, &head.data, &head.length))
        return NULL;
    if (start < 0)
        return PyErr_Format(PyExc_ValueError, "the start must be no less than 0");
    struct output output = {NULL, 0, 0};
    PyObject *results = PyList_New(0);
    /* What is called may change the column. */
    for (Py_ssize_t index = start; results != NULL && index < PyList_Size(column); index++) {
        PyObject *each = Py_NewRef(PyList_GetItem(column, index));
        PyObject *made = element(&self->root, each, head, &output);
        Py_DECREF(each);
        if (made == NULL)
            break;
        if (PyList_Append(results, made) < 0)
            Py_CLEAR(results);
        Py_DECREF(made);
    }
    free(output.data);
    /* What ends the program is no error of an element. */
    if (PyErr_Occurred() && results != NULL && PyErr_ExceptionMatches(PyExc_Exception))
        PyErr_Clear();
    if (PyErr_Occurred())
        Py_CLEAR(results);
    return results;
}

static PyObject *codec_read(Codec *self, PyObject *args) {
    return code(self, args, read_element);
}

static PyObject *codec_write(Codec *self, PyObject *args) {
    return code(self, args, write_element);
}

static PyMethodDef methods[] = {
    {"read", (PyCFunction)codec_read, METH_VARARGS,
     "read(column, start, head)\n--\n\nReturn the values of the elements from `start` on, None for None, up to the first that "
     "is not the head and plainly a value behind it."},
    {"write", (PyCFunction)codec_write, METH_VARARGS,
     "write(column, start, head)\n--\n\nReturn the bytes of the elements from `start` on, the head before each, None for "
     "None, up to the first that is not plainly of its type."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot type_slots[] = {
    {Py_tp_doc, "Codec(plan)\n--\n\nReads and writes the values of one Avro schema."},
    {Py_tp_new, codec_new},
    {Py_tp_dealloc, codec_dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec type_spec = {
    .name = "twopc.serde._avro.Codec",
    .basicsize = sizeof(Codec),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = type_slots,
};

static int add_type(PyObject *module) {
    PyObject *type = PyType_FromSpec(&type_spec);
    int failed = type == NULL ? -1 : PyModule_AddObjectRef(module, "Codec", type);
    Py_XDECREF(type);
    return failed;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, add_type}, {0, NULL}};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "_avro", .m_slots = slots};

PyMODINIT_FUNC PyInit__avro(void) {
    return PyModuleDef_Init(&definition);
}
