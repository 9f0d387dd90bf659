/* The layout that a user's module was compiled against, checked before that module touches the core.
 *
 * A module that cimports the core holds the layout of its classes and the places of their methods. Cython compares
 * sizes when it imports a type: another order of fields of the same size would be read wrongly, and a size that differs
 * raises an error that names no remedy. So the first import of a module of the core goes through `ps_import_checked`,
 * which asks cython_core.abi whether the digest of the declarations is that of the installed core.
 *
 * Order: Cython's code imports the modules of cimported types by PyImport_ImportModule, before it reads anything of
 * them and before the user's first line runs. tests/core/compiled holds it to that.
 */
#ifndef PYSTORM_ABI_H
#define PYSTORM_ABI_H

#include <Python.h>

#ifdef PYSTORM_COMPONENT_ABI
#include <string.h>

static int ps_abi_checked = 0;

static int ps_check_abi(const char *module) {
    PyObject *answer, *abi = PyImport_ImportModule("cython_core.abi");
    if (abi == NULL) return -1;
    answer = PyObject_CallMethod(abi, "require", "sss", module, PYSTORM_COMPONENT_VERSION, PYSTORM_COMPONENT_ABI);
    Py_DECREF(abi);
    Py_XDECREF(answer);
    return answer == NULL ? -1 : 0;
}

static PyObject *ps_import_checked(const char *name, const char *module) {
    if (!ps_abi_checked && strncmp(name, "cython_core.", 12) == 0) {
        if (ps_check_abi(module) < 0) return NULL;
        ps_abi_checked = 1;
    }
    return PyImport_ImportModule(name);
}

#define PyImport_ImportModule(name) ps_import_checked(name, __Pyx_MODULE_NAME)
#elif !defined(PYSTORM_CORE)
#error "build modules of compiled components with pystorm_source.building.extensions: see docs/COMPILED_BOLTS.md"
#endif

#endif
