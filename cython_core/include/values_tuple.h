/* Named tuples for `.values`, made and let go without the general machinery of heap types.
 *
 * A class made by collections.namedtuple has the layout of tuple and no fields, dict or weak references of its own. Its
 * instances would still be made by PyType_GenericAlloc and let go by subtype_dealloc, about 400 instructions a pair.
 * `ps_values_adopt` gives such a class the deallocator below, which keeps small instances for the next tuple.
 *
 * Threading law: the interpreter lock is held.
 */
#ifndef PYSTORM_VALUES_TUPLE_H
#define PYSTORM_VALUES_TUPLE_H

#include <Python.h>

#define PS_VALUES_LONGEST 8 /* longer ones are freed */
#define PS_VALUES_KEPT 256  /* of each length */

static PyObject *ps_values_kept[PS_VALUES_LONGEST + 1][PS_VALUES_KEPT];
static int ps_values_count[PS_VALUES_LONGEST + 1];

static void ps_values_dealloc(PyObject *op) {
    PyTypeObject *type = Py_TYPE(op);
    Py_ssize_t i, n = Py_SIZE(op);
    if (type->tp_dealloc != ps_values_dealloc) {
        /* A user's subclass: subtype_dealloc has done its part and calls the base's. */
        PyTuple_Type.tp_dealloc(op);
        return;
    }
    PyObject_GC_UnTrack(op);
    Py_TRASHCAN_BEGIN(op, ps_values_dealloc)
    for (i = 0; i < n; i++) {
        PyObject *item = PyTuple_GET_ITEM(op, i);
        PyTuple_SET_ITEM(op, i, NULL);
        Py_XDECREF(item);
    }
    /* Order: counted after the items went, whose end may run code that makes and lets go tuples. */
    if (n <= PS_VALUES_LONGEST && ps_values_count[n] < PS_VALUES_KEPT) {
        ps_values_kept[n][ps_values_count[n]++] = op;
    } else {
        PyObject_GC_Del(op);
    }
    Py_DECREF(type);
    Py_TRASHCAN_END
}

/* For a class fresh from collections.namedtuple. */
static void ps_values_adopt(PyObject *values_class) { ((PyTypeObject *)values_class)->tp_dealloc = ps_values_dealloc; }

/* A plain tuple that nobody else refers to becomes one of the class by changing its type. 0 where it is shared, of
 * another type or empty. */
static int ps_values_rename(PyObject *payload, PyObject *values_class) {
    if (Py_REFCNT(payload) != 1 || !PyTuple_CheckExact(payload) || PyTuple_GET_SIZE(payload) == 0) return 0;
    Py_INCREF(values_class);
    Py_SET_TYPE(payload, (PyTypeObject *)values_class);
    return 1;
}

/* A new instance of the class with the items of `payload`, a tuple. */
static PyObject *ps_values_copy(PyObject *payload, PyObject *values_class) {
    PyTypeObject *type = (PyTypeObject *)values_class;
    Py_ssize_t i, n = PyTuple_GET_SIZE(payload);
    PyObject *made;
    int kept = type->tp_dealloc == ps_values_dealloc && n <= PS_VALUES_LONGEST && ps_values_count[n] > 0;
    if (kept) {
        made = ps_values_kept[n][--ps_values_count[n]];
        Py_INCREF(type);
        Py_SET_TYPE(made, type);
        _Py_NewReference(made);
    } else {
        made = type->tp_alloc(type, n);
        if (made == NULL) return NULL;
    }
    for (i = 0; i < n; i++) {
        PyObject *item = PyTuple_GET_ITEM(payload, i);
        Py_INCREF(item);
        PyTuple_SET_ITEM(made, i, item);
    }
    if (kept) PyObject_GC_Track(made);
    return made;
}

#endif
