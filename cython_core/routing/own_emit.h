/* `emit` as a method of the component's own class.
 *
 * CPython's specialised call of a C method (3.11 on) asks for an instance of exactly the class that the method belongs
 * to; an inherited one is called the long way, through PyObject_Vectorcall, the descriptor and a check of the result.
 * So a component's class gets a descriptor of its own. It takes the plain emits itself and leaves everything else
 * (keywords, streams, anchors, task ids, a component that is not the running one) to the method that it stands for.
 */
#ifndef PYSTORM_OWN_EMIT_H
#define PYSTORM_OWN_EMIT_H

#include <Python.h>

typedef int (*ps_try_emit)(PyObject *, PyObject *, PyObject *);

typedef PyObject *(*ps_fast_method)(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);

static ps_try_emit ps_try_spout, ps_try_bolt;
static ps_fast_method ps_general_spout, ps_general_bolt;

static PyObject *ps_spout_emit(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    if (names == NULL && (count == 1 || count == 2)) {
        int done = ps_try_spout(self, args[0], count == 2 ? args[1] : NULL);
        if (done < 0) return NULL;
        if (done) Py_RETURN_NONE;
    }
    return ps_general_spout(self, args, count, names);
}

static PyObject *ps_bolt_emit(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    if (names == NULL && count == 1) {
        int done = ps_try_bolt(self, args[0], NULL);
        if (done < 0) return NULL;
        if (done) Py_RETURN_NONE;
    }
    return ps_general_bolt(self, args, count, names);
}

static PyMethodDef ps_emits[2] = {
    {"emit", (PyCFunction)(void (*)(void))ps_spout_emit, METH_FASTCALL | METH_KEYWORDS, NULL},
    {"emit", (PyCFunction)(void (*)(void))ps_bolt_emit, METH_FASTCALL | METH_KEYWORDS, NULL},
};

/* Reads the general method from the base that defines it; it must be METH_FASTCALL | METH_KEYWORDS. */
static int ps_own_emit_set(int is_bolt, ps_try_emit plain, PyObject *base) {
    PyObject *found = PyObject_GetAttrString(base, "emit");
    PyMethodDef *method;
    if (found == NULL) return -1;
    method = Py_IS_TYPE(found, &PyMethodDescr_Type) ? ((PyMethodDescrObject *)found)->d_method : NULL;
    Py_DECREF(found);
    if (method == NULL || method->ml_flags != (METH_FASTCALL | METH_KEYWORDS)) {
        PyErr_SetString(PyExc_SystemError, "emit was compiled to another calling convention than own_emit.h expects");
        return -1;
    }
    *(is_bolt ? &ps_general_bolt : &ps_general_spout) = (ps_fast_method)(void (*)(void))method->ml_meth;
    *(is_bolt ? &ps_try_bolt : &ps_try_spout) = plain;
    ps_emits[is_bolt].ml_doc = method->ml_doc;
    return 0;
}

/* Gives `cls` the descriptor if its `emit` is the engine's and not its own: 1 if it has it now. A class that
 * takes no attributes stays as it is: its emits go the long way. */
static int ps_own_emit(PyObject *cls, int is_bolt) {
    PyTypeObject *type = (PyTypeObject *)cls;
    ps_fast_method general = is_bolt ? ps_general_bolt : ps_general_spout;
    PyObject *own, *found;
    int given = 0;
    if (!PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) || PyType_HasFeature(type, Py_TPFLAGS_IMMUTABLETYPE)) return 0;
    found = PyObject_GetAttrString(cls, "emit");
    if (found == NULL) return -1;
    if (Py_IS_TYPE(found, &PyMethodDescr_Type) && PyDescr_TYPE(found) != type) {
        PyMethodDef *method = ((PyMethodDescrObject *)found)->d_method;
        if (method == &ps_emits[is_bolt] || (ps_fast_method)(void (*)(void))method->ml_meth == general) {
            own = PyDescr_NewMethod(type, &ps_emits[is_bolt]);
            if (own == NULL || PyObject_SetAttrString(cls, "emit", own) < 0) PyErr_Clear();
            else given = 1;
            Py_XDECREF(own);
        }
    }
    Py_DECREF(found);
    return given;
}

/* Whether `bound`, a component's `emit`, is the engine's. */
static int ps_is_own_emit(PyObject *bound, int is_bolt) {
    ps_fast_method general = is_bolt ? ps_general_bolt : ps_general_spout;
    ps_fast_method method;
    if (!PyCFunction_Check(bound)) return 0;
    method = (ps_fast_method)(void (*)(void))PyCFunction_GET_FUNCTION(bound);
    return method == general || method == (is_bolt ? ps_bolt_emit : ps_spout_emit);
}

/* Removes the descriptor, so that an `emit` which a test puts into the base class is called. */
static int ps_own_emit_back(PyObject *cls, int is_bolt) {
    PyObject *found = PyObject_GetAttrString(cls, "emit");
    if (found == NULL) return -1;
    if (Py_IS_TYPE(found, &PyMethodDescr_Type) && PyDescr_TYPE(found) == (PyTypeObject *)cls &&
        ((PyMethodDescrObject *)found)->d_method == &ps_emits[is_bolt]) {
        if (PyObject_DelAttrString(cls, "emit") < 0) PyErr_Clear();
    }
    Py_DECREF(found);
    return 0;
}

#endif
