"""The tuple that bolts get, and where it comes from.

A ``Tuple`` looks like streamparse's named tuple ``(id, component, stream, task, values)``: unpackable, indexable,
comparable, hashable. The named tuple of the declared fields is built when ``.values`` is first read, not at the emit:
a bolt that never looks at its values does not pay for it.

Threading law: a tuple is owned by one executor at a time.
"""

import re
import weakref
from collections import namedtuple

cimport cython
from cpython.object cimport PyObject

cdef extern from "values_tuple.h":
    void ps_values_adopt(object values_class)
    bint ps_values_rename(PyObject *payload, PyObject *values_class)
    object ps_values_copy(object payload, object values_class)


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
        ps_values_adopt(made)
        _classes[name, fields] = made
    return made


@cython.binding(True)  # a method of the classes
def _reduce_values(values):
    return _values_again, (type(values).__name__, values._fields, tuple(values))


def _values_again(name, fields, values):
    return _named_class(name, fields)._make(values)


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


def _tuple_again(component, stream, task, fields, values, offset, id):
    tup = new_tuple(TupleSource(component, stream, task, fields), values, offset, None)
    tup.key = id
    return tup


@cython.final
cdef class TupleSource:
    """Component, stream, task and fields shared by all tuples of one producer task's stream."""

    def __init__(self, str component not None, str stream not None, int task, tuple fields=None):
        self.component = component
        self.stream = stream
        self.task = task
        self.fields = fields
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
    """``Tuple(id, component, stream, task, values)``; made by the engine, or by hand in unit tests of bolts.

    ``id`` is opaque and unique in its process; ``task`` is -1 for system tuples; ``values`` is a named tuple of the
    declared fields where their names allow it. Values are shared by reference: treat them as immutable.
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

    @property
    def values(self):
        cdef object values_class = self.source.values_class
        cdef object payload
        if values_class is not None and type(self.payload) is not values_class:
            if not ps_values_rename(<PyObject *>self.payload, <PyObject *>values_class):
                payload = self.payload
                self.payload = ps_values_copy(payload, values_class)
        return self.payload

    def __iter__(self):
        return iter((self.id, self.component, self.stream, self.task, self.values))

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
            f"task={self.task!r}, values={self.values!r})"
        )
