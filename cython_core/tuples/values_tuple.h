/* Named tuples for `.values`: made, read and let go without the general machinery of heap types.
 *
 * A class made by collections.namedtuple has the layout of tuple and no fields, dict or weak references of its own. Its
 * instances would still be made by PyType_GenericAlloc and let go by subtype_dealloc, about 400 instructions a pair,
 * and each field read through a descriptor that CPython cannot specialise, about 200. `ps_values_adopt` gives such a
 * class the deallocator below, which keeps small instances for the next tuple, and members in the place of these
 * descriptors: LOAD_ATTR reads a member of type T_OBJECT_EX where it lies (LOAD_ATTR_SLOT, from 3.11 on).
 *
 * Threading law: the interpreter lock is held.
 */
#ifndef PYSTORM_VALUES_TUPLE_H
#define PYSTORM_VALUES_TUPLE_H

#include <Python.h>
#include <structmember.h>
#include <stddef.h>

#define PS_VALUES_LONGEST 8 /* longer ones are freed */
#define PS_VALUES_KEPT 256  /* of each length */

static PyObject *ps_values_kept[PS_VALUES_LONGEST + 1][PS_VALUES_KEPT];
static int ps_values_count[PS_VALUES_LONGEST + 1];

/* Lets go of the items, then keeps or frees the tuple.
 * Order: counted after the items went, whose end may run code that makes and lets go tuples. */
static inline void ps_values_empty(PyObject *op) {
    PyTypeObject *type = Py_TYPE(op);
    Py_ssize_t i, n = Py_SIZE(op);
    for (i = 0; i < n; i++) {
        PyObject *item = PyTuple_GET_ITEM(op, i);
        PyTuple_SET_ITEM(op, i, NULL);
        Py_XDECREF(item);
    }
    if (n <= PS_VALUES_LONGEST && ps_values_count[n] < PS_VALUES_KEPT) {
        ps_values_kept[n][ps_values_count[n]++] = op;
    } else {
        PyObject_GC_Del(op);
    }
    Py_DECREF(type);
}

static void ps_values_dealloc(PyObject *op) {
    if (Py_TYPE(op)->tp_dealloc != ps_values_dealloc) {
        /* A user's subclass: subtype_dealloc has done its part and calls the base's. */
        PyTuple_Type.tp_dealloc(op);
        return;
    }
    if (!PyObject_GC_IsTracked(op)) {
        /* Nothing in it refers to anything: no nesting that could exhaust the stack. */
        ps_values_empty(op);
        return;
    }
    PyObject_GC_UnTrack(op);
    Py_TRASHCAN_BEGIN(op, ps_values_dealloc)
    ps_values_empty(op);
    Py_TRASHCAN_END
}

/* A member of objects, to be read only. `name`, which must live for ever. NULL, with MemoryError set, without
 * memory. */
static PyMemberDef *ps_member(const char *name, Py_ssize_t offset, const char *doc) {
    PyMemberDef *made = (PyMemberDef *)PyMem_Calloc(1, sizeof(PyMemberDef));
    if (made == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    made->name = name;
    made->type = T_OBJECT_EX;
    made->offset = offset;
    made->flags = READONLY;
    made->doc = doc;
    return made;
}

/* The member that is field `index` of tuples. */
static PyMemberDef *ps_field_member(const char *name, Py_ssize_t index) {
    return ps_member(name, (Py_ssize_t)offsetof(PyTupleObject, ob_item) + index * (Py_ssize_t)sizeof(PyObject *), NULL);
}

static int ps_values_place(PyObject *values_class, PyMemberDef *member) {
    PyObject *descriptor = PyDescr_NewMember((PyTypeObject *)values_class, member);
    int done = descriptor == NULL ? -1 : PyObject_SetAttrString(values_class, member->name, descriptor);
    Py_XDECREF(descriptor);
    return done;
}

/* For a class fresh from collections.namedtuple. */
static void ps_values_adopt(PyObject *values_class) { ((PyTypeObject *)values_class)->tp_dealloc = ps_values_dealloc; }

/* Makes `values` a member of the engine's tuples, whose first field it is; `probe` is one of them with these values. */
static int ps_tuple_has_values(PyObject *tuple_class, PyObject *probe, PyObject *values) {
    PyTypeObject *type = (PyTypeObject *)tuple_class;
    PyMemberDef *member = ps_member("values", (Py_ssize_t)sizeof(PyObject), "A named tuple of the declared fields.");
    PyObject *descriptor;
    int done = -1;
    if (member == NULL) return -1;
    if (*(PyObject **)(probe + 1) != values) {
        PyErr_SetString(PyExc_SystemError, "the values of a tuple were not compiled to be its first field");
        return -1;
    }
    descriptor = PyDescr_NewMember(type, member);
    if (descriptor != NULL) done = PyDict_SetItemString(type->tp_dict, "values", descriptor);
    Py_XDECREF(descriptor);
    PyType_Modified(type);
    return done;
}

/* Changes the class of values that another stream has named. 0 if they are shared, of another type or empty. */
static inline int ps_values_rename(PyObject *payload, PyObject *values_class) {
    PyTypeObject *type = Py_TYPE(payload);
    /* Order: the type first, as only a tuple has a size here. A batch of rows is none. */
    if (type->tp_dealloc != ps_values_dealloc || Py_REFCNT(payload) != 1 || PyTuple_GET_SIZE(payload) == 0) return 0;
    Py_DECREF(type);
    Py_INCREF(values_class);
    Py_SET_TYPE(payload, (PyTypeObject *)values_class);
    return 1;
}

/* From 3.14 on a tuple keeps its hash. Without this an instance answers 0, or the hash of the values before. */
static inline void ps_values_unhashed(PyObject *op) {
#if PY_VERSION_HEX >= 0x030E0000
    ((PyTupleObject *)op)->ob_hash = -1;
#else
    (void)op;
#endif
}

/* A new instance of the class with these items. */
static inline PyObject *ps_values_of(PyObject **items, Py_ssize_t n, PyObject *values_class) {
    PyTypeObject *type = (PyTypeObject *)values_class;
    PyObject *made;
    Py_ssize_t i;
    int refers = 0;
    if (type->tp_dealloc == ps_values_dealloc && n <= PS_VALUES_LONGEST && ps_values_count[n] > 0) {
        made = ps_values_kept[n][--ps_values_count[n]];
        Py_INCREF(type);
        Py_SET_TYPE(made, type);
        _Py_NewReference(made);
    } else {
        made = type->tp_alloc(type, n);
        if (made == NULL) return NULL;
        PyObject_GC_UnTrack(made);
    }
    ps_values_unhashed(made);
    for (i = 0; i < n; i++) {
        PyObject *item = items[i];
        Py_INCREF(item);
        PyTuple_SET_ITEM(made, i, item);
        refers |= PyType_HasFeature(Py_TYPE(item), Py_TPFLAGS_HAVE_GC);
    }
    /* As tuples of plain values are, once the collector has seen them. */
    if (refers) PyObject_GC_Track(made);
    return made;
}

/* A new instance of the class with the items of `values`, a list or tuple. */
static PyObject *ps_values_made(PyObject *values, PyObject *values_class) {
    return ps_values_of(PySequence_Fast_ITEMS(values), Py_SIZE(values), values_class);
}

#endif
