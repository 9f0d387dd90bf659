"""The tuple that bolts get, and where it comes from.

A ``Tuple`` looks like streamparse's named tuple ``(id, component, stream, task, values)``: unpackable, indexable,
comparable, hashable. ``.values`` is a member, the named tuple of the declared fields, so that CPython's specialised
attribute opcodes read it where it lies: it is made at the emit of a list, of a tuple when it reaches its bolt.

Threading law: a tuple is owned by one executor at a time.
"""

import re
import weakref
from collections import namedtuple

cimport cython
from cpython.object cimport PyObject
from cpython.unicode cimport PyUnicode_AsUTF8

include "column_slice.pxi"

cdef extern from "cython_core/tuples/values_tuple.h":
    ctypedef struct PyMemberDef:
        pass
    PyMemberDef *ps_field_member(const char *name, Py_ssize_t index) except NULL
    int ps_values_place(object values_class, PyMemberDef *member) except -1
    void ps_values_adopt(object values_class)
    bint ps_values_rename(PyObject *payload, PyObject *values_class)
    object ps_values_made(object values, object values_class)
    object ps_values_of(PyObject **items, Py_ssize_t n, object values_class)
    int ps_tuple_has_values(object tuple_class, object probe, object values) except -1


cdef unsigned long long last_id = 0
cdef dict named = {}
_NOT_IDENTIFIER = re.compile(r"\W|^(?=\d)")
SYSTEM_COMPONENT = "__system"
TICK_STREAM = "__tick"


# (class name, fields) → class: the tasks of a component share it, and so do values that come back from a pickle.
_classes = weakref.WeakValueDictionary()


def values_class_of(str component, str stream, tuple fields):
    """The class of ``.values``: ``<Component><Stream>Tuple`` in streamparse's spelling, None for invalid names.

    ``namedtuple`` refuses keywords, duplicates and names with a leading underscore; such streams carry plain tuples.
    """
    name = _NOT_IDENTIFIER.sub("_", component.title()) + _NOT_IDENTIFIER.sub("_", stream.title()) + "Tuple"
    return _named_class(name, fields)


def _named_class(name, fields):
    made = _classes.get((name, fields))
    if made is None:
        try:
            made = namedtuple(name, fields, module=__name__)
        except ValueError:
            return None
        made.__reduce__ = _reduce_values
        _place_fields(made, fields)
        ps_values_adopt(made)
        _classes[name, fields] = made
    return made


# (field's name, index) → address of its PyMemberDef, kept for good with the name: there are as many as distinct fields.
cdef dict _members = {}


cdef int _place_fields(object values_class, tuple fields) except -1:
    for index, name in enumerate(fields):
        if (name, index) not in _members:
            _members[name, index] = <size_t>ps_field_member(PyUnicode_AsUTF8(name), index)
        ps_values_place(values_class, <PyMemberDef *><size_t>_members[name, index])
    return 0


@cython.binding(True)  # a method of the classes
def _reduce_values(values):
    return _values_again, (type(values).__name__, values._fields, tuple(values))


def _values_again(name, fields, values):
    return _named_class(name, fields)._make(values)


cdef object named_values(object values, object values_class):
    """A list or tuple as an instance of the class; as a plain tuple where that is None."""
    if values_class is None:
        return tuple(values)
    return ps_values_made(values, values_class)


cdef object values_of(PyObject **items, Py_ssize_t n, object values_class):
    """An instance of the class, which may not be None, with these items."""
    return ps_values_of(items, n, values_class)


@cython.auto_pickle(True)
cdef class TupleBatch:
    """``count`` rows of about ``weight`` bytes, as one payload."""

    cdef list between(self, Py_ssize_t start, Py_ssize_t end, object only=None):
        """Rows ``start`` to ``end`` as tuples of values. ``only``: as of ``BatchRows``."""
        raise NotImplementedError


cdef int give_names(Tuple tup) except -1:
    cdef object payload = None
    if tup.source.values_class is None:
        return isinstance(tup.payload, TupleBatch)
    if not ps_values_rename(<PyObject *>tup.payload, <PyObject *>tup.source.values_class):
        payload = tup.payload
        if isinstance(payload, TupleBatch):
            return 1
        tup.payload = ps_values_made(payload, tup.source.values_class)
    return 0


cdef Tuple tuple_named(object key):
    """The living tuple that has answered this id, or None."""
    cdef object address
    try:
        address = named.get(key)
    except TypeError:  # an id that is no hashable value is none of ours
        return None
    return None if address is None else <Tuple><PyObject *><size_t>address


cdef int forget_name(PyObject *tup, object key) except -1:
    # The ids of tuples made by hand are not in the table; their like may be anything, unhashable even.
    if type(key) is str and named.get(key) == <size_t>tup:
        del named[key]
    return 0


cpdef bint is_final_tick(object tup) except -1:
    """Whether it is the tick that ends a range: its value is 0, that of any other tick the period, above 0."""
    # Unit tests of components call process_tick with anything, None too.
    if getattr(tup, "stream", None) != TICK_STREAM or getattr(tup, "component", None) != SYSTEM_COMPONENT:
        return False
    return len(tup.values) == 1 and tup.values[0] == 0


def offset_of_tree(Tuple tup not None):
    """The offset of the spout tuple that it stems from; below 0: of several, or of none that has one."""
    return -1 if tup.roots is not None else tup.offset


def attempt_of_tree(Tuple tup not None):
    """Which attempt of the spout tuple it belongs to, from 1; 0: it stems from several or from none that is tracked, or
    its tree is over."""
    return tup.root.emits if tup.root is not NULL and tup.root.attempt == tup.attempt else 0


cdef Roots _ids_of = None
cdef tuple _ids = None
cdef unsigned long long _failures = 0


def ids_of_trees(Tuple tup not None):
    """As ``tree_ids``."""
    return tree_ids(tup)


cdef tuple tree_ids(Tuple tup):
    """The message ids of the trees that it is an edge of, what its spout has emitted them with; and whether one of them
    has failed: its id is not known any more."""
    cdef Roots roots = tup.roots
    if tup.root is not NULL:
        if tup.root.attempt == tup.attempt and tup.root.id is not NULL:
            return (<object>tup.root.id,), False
        return (), True
    global _ids_of, _ids, _failures
    if roots is None:
        return (), False
    # What is made of a batch has the same roots, tuple by tuple: they are looked at once.
    if roots is _ids_of and roots.owner.acker.failures == _failures:
        return _ids
    ids = tuple([
        <object>roots.roots[i].id
        for i in range(roots.count)
        if roots.roots[i].attempt == roots.attempts[i] and roots.roots[i].id is not NULL
    ])
    _ids_of, _failures = roots, roots.owner.acker.failures
    _ids = (ids, len(ids) < roots.count)
    return _ids


def _tuple_again(component, stream, task, fields, values, offset, id):
    tup = new_tuple(TupleSource(component, stream, task, fields), values, offset)
    name_values(tup)
    tup.key = id
    return tup


# A tuple that ends as garbage may still speak to the acker of its source: that stays, hence no_gc_clear.
@cython.final
@cython.no_gc_clear
cdef class TupleSource:
    """Component, stream, task, fields and acker shared by all tuples of one producer task's stream."""

    def __init__(self, str component not None, str stream not None, int task, tuple fields=None, Acker acker=None):
        self.component = component
        self.stream = stream
        self.task = task
        self.fields = fields
        self.acker = acker
        self.values_class = None if fields is None else values_class_of(component, stream, fields)

    def __repr__(self):
        return f"{self.component}.{self.stream}[{self.task}]"

    def __reduce__(self):
        return TupleSource, (self.component, self.stream, self.task, self.fields)


# A collected cycle must not clear the key before the name is forgotten, hence no_gc_clear; the other objects of the
# cycle, which the values hold, are cleared.
@cython.final
@cython.freelist(1024)
@cython.no_gc_clear
cdef class Tuple:
    """What a bolt gets: values and their origin. Made by the engine, or by hand in unit tests of bolts.

    Unpacks, compares and hashes as streamparse's named tuple ``(id, component, stream, task, values)`` does.
    Trap: values are shared by reference with other receivers: do not change them.

    Attributes:
        id (Any): opaque; unique in its process.
        component (str): name of the component that has emitted it.
        stream (str): its stream.
        task (int): id of the task that has emitted it; -1 for ticks.
        values (tuple): a named tuple of the declared fields if their names allow it, else a plain tuple.

    Args:
        id (Any): see above. Defaults to None.
        component (str): see above. Defaults to '__system'.
        stream (str): see above. Defaults to 'default'.
        task (int): see above. Defaults to -1.
        values (Iterable): see above. Defaults to ().

    Example:
        >>> tup = Tuple(1, "words", "default", 3, ["cow", 2])
        >>> tup.values
        ('cow', 2)
        >>> id, component, stream, task, values = tup
        >>> component, task
        ('words', 3)
    """

    def __init__(self, id=None, component=SYSTEM_COMPONENT, stream="default", task=-1, values=()):
        self.payload = values if isinstance(values, tuple) else tuple(values)
        if isinstance(component, str) and isinstance(stream, str) and isinstance(task, int):
            self.source = TupleSource(component, stream, task)
        else:  # unit tests of bolts leave out or make up what their bolt does not look at
            self.source = TupleSource("", "", 0)
            self.source.odd = (component, stream, task)
        self.offset = -1
        self.key = id

    def __dealloc__(self):
        if self.key is not None:
            forget_name(<PyObject *>self, self.key)
        take_gathered(self)  # its bolt has thrown its batch away: the tree is to time out

    @property
    def id(self):
        global last_id
        if self.key is None:
            last_id += 1
            self.key = f"{self.source.component}:{self.source.task}:{last_id}"
            named[self.key] = <size_t><PyObject *>self
        return self.key

    @property
    def component(self):
        return self.source.component if self.source.odd is None else self.source.odd[0]

    @property
    def stream(self):
        return self.source.stream if self.source.odd is None else self.source.odd[1]

    @property
    def task(self):
        return self.source.task if self.source.odd is None else self.source.odd[2]

    def __iter__(self):
        return iter((self.id, self.component, self.stream, self.task, self.payload))

    def __len__(self):
        return 5

    def __getitem__(self, index):
        return tuple(self)[index]

    def __eq__(self, other):
        if isinstance(other, (Tuple, tuple)):
            return tuple(self) == tuple(other)
        return NotImplemented

    def __lt__(self, other):
        return tuple(self) < tuple(other) if isinstance(other, (Tuple, tuple)) else NotImplemented

    def __le__(self, other):
        return tuple(self) <= tuple(other) if isinstance(other, (Tuple, tuple)) else NotImplemented

    def __gt__(self, other):
        return tuple(self) > tuple(other) if isinstance(other, (Tuple, tuple)) else NotImplemented

    def __ge__(self, other):
        return tuple(self) >= tuple(other) if isinstance(other, (Tuple, tuple)) else NotImplemented

    def __hash__(self):
        return hash(tuple(self))

    def __reduce__(self):
        source = self.source
        if source.odd is not None:
            return Tuple, tuple(self)
        values = tuple(self.payload)
        return _tuple_again, (source.component, source.stream, source.task, source.fields, values, self.offset, self.id)

    def __repr__(self):
        return (
            f"Tuple(id={self.id!r}, component={self.component!r}, stream={self.stream!r}, "
            f"task={self.task!r}, values={self.payload!r})"
        )


cdef int _place_values() except -1:
    cdef Tuple probe = Tuple.__new__(Tuple)
    probe.payload = ("probe",)
    return ps_tuple_has_values(Tuple, probe, probe.payload)


_place_values()
