/* What the files of the module have of each other. Python's limited API only, so that one build serves every version. */
#ifndef TWOPC_MODULE_H
#define TWOPC_MODULE_H

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "client.h"

/* Each adds its type to the module; -1 with an exception set where that fails. */
int records_add_type(PyObject *module);
int reader_add_type(PyObject *module);
int writer_add_type(PyObject *module);

/* Return records of what was read; NULL with an exception set. The messages stay the caller's. */
PyObject *records_new(rd_kafka_message_t **messages, Py_ssize_t count, PyObject *topics);

/* Take the lock of a client, without Python's meanwhile. */
void client_lock(struct client *);

#endif
