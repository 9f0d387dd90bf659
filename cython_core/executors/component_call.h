/* Calling a component's method from C, resolved once instead of per tuple.
 *
 * A bound method is a function and its self; calling it as an object costs a second dispatch and a copy of the
 * arguments. If the method is a plain Python function (it nearly always is), its vectorcall entry is called with
 * self in place; anything else (a callable attribute, a functools.partial, a mock) is called as the object that it is.
 */
#ifndef PYSTORM_COMPONENT_CALL_H
#define PYSTORM_COMPONENT_CALL_H

#include <Python.h>

typedef struct {
    vectorcallfunc entry; /* NULL: call `callable` as an object */
    PyObject *callable;   /* borrowed: the executor's attribute owns the method */
    PyObject *self;       /* borrowed from the method; NULL where there is none */
} ps_call;

static inline void ps_call_resolve(ps_call *call, PyObject *method) {
    call->entry = NULL;
    call->callable = method;
    call->self = NULL;
    if (PyMethod_Check(method) && PyFunction_Check(PyMethod_GET_FUNCTION(method))) {
        call->callable = PyMethod_GET_FUNCTION(method);
        call->self = PyMethod_GET_SELF(method);
        call->entry = PyVectorcall_Function(call->callable);
    }
}

/* As Cython writes a vectorcallfunc, which has no const inside of a type. */
typedef PyObject *(*ps_component_entry)(PyObject *, PyObject **, size_t, PyObject *);

/* A compiled component: `entry` is called as the function of its method would be, with the component as callable. */
static inline void ps_call_compiled(ps_call *call, ps_component_entry entry, PyObject *component) {
    call->entry = (vectorcallfunc)entry;
    call->callable = component;
    call->self = component;
}

static inline PyObject *ps_call_none(const ps_call *call) {
    PyObject *arguments[2];
    if (call->entry == NULL) return PyObject_CallNoArgs(call->callable);
    arguments[0] = NULL; /* scratch for the callee, as PY_VECTORCALL_ARGUMENTS_OFFSET asks */
    arguments[1] = call->self;
    return call->entry(call->callable, arguments + 1, 1 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
}

static inline PyObject *ps_call_one(const ps_call *call, PyObject *argument) {
    PyObject *arguments[3];
    if (call->entry == NULL) return PyObject_CallOneArg(call->callable, argument);
    arguments[0] = NULL;
    arguments[1] = call->self;
    arguments[2] = argument;
    return call->entry(call->callable, arguments + 1, 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
}

#endif
