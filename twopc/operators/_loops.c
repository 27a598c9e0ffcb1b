/* twopc.operators._loops: what keyed operators do with each record of a batch; `loops.py` has the same in Python. */
#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* What begins a key that is not its own form; `twopc.state.key_form` says so. */
enum { MARK = 0xFF };

/* Who takes part in `apply`; all borrowed from the caller, who holds them until it returns. */
struct operation {
    PyObject *function, *decode, *encode, *pair_of;
    PyObject *states, *dirty, *outputs;
    int holds_ints;
};

static int is_64_bits(PyObject *number) {
    int overflow;
    (void)PyLong_AsLongLongAndOverflow(number, &overflow);
    return !overflow;
}

/* Keep the state that the function left behind, and its output; -1 with an exception set, and nothing kept. */
static int keep(struct operation *of, PyObject *key, PyObject *held, PyObject *state, PyObject *pair) {
    PyObject *left = PyTuple_GetItem(pair, 0), *new;
    int is_same, failed;
    if (of->holds_ints && PyLong_CheckExact(left) && is_64_bits(left)) {
        new = Py_NewRef(left);
        is_same = PyLong_CheckExact(state) ? PyObject_RichCompareBool(new, state, Py_EQ) : 0;
    } else {
        new = PyObject_CallFunctionObjArgs(of->encode, left, NULL);
        if (new == NULL)
            return -1;
        is_same = PyObject_RichCompareBool(new, held, Py_EQ);
    }
    failed = is_same < 0 || PyDict_SetItem(of->states, key, new) < 0 ||
             (!is_same && PyDict_SetItem(of->dirty, key, new) < 0) ||
             PyList_Append(of->outputs, PyTuple_GetItem(pair, 1)) < 0;
    Py_DECREF(new);
    return failed ? -1 : 0;
}

/* Call the function for one key and value; -1 with an exception set, and nothing kept. */
static int call(struct operation *of, PyObject *key, PyObject *value) {
    PyObject *held = PyDict_GetItemWithError(of->states, key);
    if (held == NULL && PyErr_Occurred())
        return -1;
    held = Py_NewRef(held == NULL ? Py_None : held);
    PyObject *state = PyBytes_CheckExact(held) ? PyObject_CallFunctionObjArgs(of->decode, held, NULL) : Py_NewRef(held);
    PyObject *result = state == NULL ? NULL : PyObject_CallFunctionObjArgs(of->function, state, value, NULL);
    if (result != NULL && !(PyTuple_CheckExact(result) && PyTuple_Size(result) == 2)) {
        PyObject *pair = PyObject_CallFunctionObjArgs(of->pair_of, result, NULL);
        Py_DECREF(result);
        result = pair;
    }
    int failed = result == NULL ? -1 : keep(of, key, held, state, result);
    Py_XDECREF(result);
    Py_XDECREF(state);
    Py_DECREF(held);
    return failed;
}

static PyObject *apply(PyObject *module, PyObject *args) {
    (void)module;
    struct operation of;
    PyObject *keys, *values;
    if (!PyArg_ParseTuple(args, "OOOOpO!OO!O!O!", &of.function, &of.decode, &of.encode, &of.pair_of, &of.holds_ints,
                          &PyList_Type, &keys, &values, &PyDict_Type, &of.states, &PyDict_Type, &of.dirty, &PyList_Type,
                          &of.outputs))
        return NULL;
    if (!PyIter_Check(values))
        return PyErr_Format(PyExc_TypeError, "apply goes over an iterator");
    /* The keys come first: the other way round one value more would be taken. */
    for (Py_ssize_t index = 0; index < PyList_Size(keys); index++) {
        PyObject *value = PyIter_Next(values);
        if (value == NULL)
            break;
        PyObject *key = Py_NewRef(PyList_GetItem(keys, index));
        int failed = call(&of, key, value);
        Py_DECREF(key);
        Py_DECREF(value);
        if (failed)
            return NULL;
    }
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

static PyObject *are_forms(PyObject *module, PyObject *keys) {
    (void)module;
    if (!PyList_Check(keys))
        return PyErr_Format(PyExc_TypeError, "are_forms goes over a list");
    for (Py_ssize_t index = 0; index < PyList_Size(keys); index++) {
        PyObject *key = PyList_GetItem(keys, index);
        /* An empty one has a 0 there. */
        if (!PyBytes_CheckExact(key) || (unsigned char)PyBytes_AsString(key)[0] == MARK)
            Py_RETURN_FALSE;
    }
    return PyBool_FromLong(PyList_Size(keys) > 0);
}

static PyObject *run_ends(PyObject *module, PyObject *numbers) {
    (void)module;
    if (!PyList_Check(numbers))
        return PyErr_Format(PyExc_TypeError, "run_ends goes over a list");
    PyObject *ends = PyList_New(0);
    Py_ssize_t count = PyList_Size(numbers);
    for (Py_ssize_t end = 1; ends != NULL && end <= count; end++) {
        int goes_on = end == count ? 0
                                   : PyObject_RichCompareBool(PyList_GetItem(numbers, end),
                                                              PyList_GetItem(numbers, end - 1), Py_EQ);
        PyObject *number = goes_on ? NULL : PyLong_FromSsize_t(end);
        if (goes_on < 0 || (!goes_on && (number == NULL || PyList_Append(ends, number) < 0)))
            Py_CLEAR(ends);
        Py_XDECREF(number);
    }
    return ends;
}

static PyMethodDef functions[] = {
    {"apply", apply, METH_VARARGS, NULL},
    {"are_forms", are_forms, METH_O, NULL},
    {"run_ends", run_ends, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {{0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "_loops", .m_methods = functions, .m_slots = slots};

PyMODINIT_FUNC PyInit__loops(void) {
    return PyModuleDef_Init(&definition);
}
