/* The payload of a new tuple becomes its values in place: what happens to nearly every tuple, thus compiled into each
 * caller. All else is values_tuple.h's, whose pools there is one of.
 *
 * Threading law: the interpreter lock is held.
 */
#ifndef PYSTORM_PLAIN_VALUES_H
#define PYSTORM_PLAIN_VALUES_H

#include <Python.h>

/* Changes the type of a plain tuple to the class. 0 if it is none, is shared or empty, or if the class is None.
 * The garbage collector would look at it for as long as it lives, for it lets go of plain tuples of plain values alone:
 * so that is done here. */
static inline int ps_plain_values_rename(PyObject *payload, PyObject *values_class) {
    Py_ssize_t i;
    /* Order: the type first, as only a tuple has a size here. The empty tuple is one object of the interpreter's. */
    if (Py_TYPE(payload) != &PyTuple_Type || Py_REFCNT(payload) != 1 || PyTuple_GET_SIZE(payload) == 0) return 0;
    if (values_class == Py_None) return 0;
    Py_INCREF(values_class);
    Py_SET_TYPE(payload, (PyTypeObject *)values_class);
    for (i = PyTuple_GET_SIZE(payload) - 1; i >= 0; i--) {
        if (PyType_HasFeature(Py_TYPE(PyTuple_GET_ITEM(payload, i)), Py_TPFLAGS_HAVE_GC)) return 1;
    }
    PyObject_GC_UnTrack(payload);
    return 1;
}

#endif
