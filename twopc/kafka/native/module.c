/* twopc.kafka.native._batches: whole batches between confluent-kafka's clients and Python's lists. */
#include "module.h"

void client_lock(struct client *client) {
    Py_BEGIN_ALLOW_THREADS;
    pthread_mutex_lock(&client->lock);
    Py_END_ALLOW_THREADS;
}

static PyObject *load(PyObject *module, PyObject *argument) {
    (void)module;
    const char *path = PyUnicode_AsUTF8AndSize(argument, NULL);
    if (path == NULL)
        return NULL;
    const char *missing = rdkafka_load(path);
    if (missing != NULL)
        return PyErr_Format(PyExc_ImportError, "there is no %s in this process", missing);
    return PyLong_FromLong(rd.version());
}

static PyMethodDef functions[] = {
    {"load", load, METH_O,
     "load(path)\n--\n\nFind librdkafka by an object of this process that needs it; return the number of its version."},
    {NULL, NULL, 0, NULL},
};

static int add_types(PyObject *module) {
    if (records_add_type(module) < 0 || reader_add_type(module) < 0 || writer_add_type(module) < 0)
        return -1;
    return PyModule_AddStringConstant(module, "CLIENT_SETTING", CLIENT_SETTING);
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, add_types}, {0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "_batches", .m_methods = functions, .m_slots = slots};

PyMODINIT_FUNC PyInit__batches(void) {
    return PyModuleDef_Init(&definition);
}
