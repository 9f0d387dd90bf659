"""What states by key cost each tuple: to find the state of its key, to change it, to put it back if the tuple fails.

    tuple ──► its key ──► state ──► the bolt's process ──► failed? put back
                         │     ▲                              │
              not read yet     │                              ▼
                         └─► store.get          flush(): store.put of those that have changed

``KeyState`` and ``KeyedStates`` of ``pystorm_source.api`` add the rest.

Threading law: one thread at a time.
"""

cimport cython
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_CheckExact
from cpython.long cimport PyLong_AsLongLongAndOverflow, PyLong_CheckExact
from cpython.object cimport PyObject_GenericGetAttr
from cpython.unicode cimport PyUnicode_CheckExact

from cython_core.routing.route cimport stable_hash
from cython_core.tuples.tuple cimport Tuple, TupleSource, is_lost

cdef extern from "Python.h":
    bint PyBool_Check(object value)
    bint PyUnicode_IS_ASCII(object text)


cdef enum:
    TAKES_OTHERS, TAKES_LONG, TAKES_DOUBLE, TAKES_BOOLEAN, TAKES_STRING

cdef dict KINDS = {"int64": TAKES_LONG, "double": TAKES_DOUBLE, "bool": TAKES_BOOLEAN, "string": TAKES_STRING}

# Component and stream of the tuples that name a key whose timer may be due: its values, and the timer's time.
TIMERS = ("__system", "__timer")
cdef object NAN = float("nan")


cpdef object part_of_key(object value):
    """Floats that Spark takes for one key are one key here: any NaN, and both zeros."""
    cdef double real
    if not PyFloat_CheckExact(value):
        return value
    real = PyFloat_AS_DOUBLE(value)
    return NAN if real != real else real + 0.0


def page_of(tuple key not None, unsigned long long pages):
    """The page of a key among so many, at least 1, by linear hashing: with one page more, only keys of one page move,
    and all of them to the new one."""
    cdef unsigned long long mask = 1
    cdef unsigned long long page = stable_hash(key)
    while mask < pages:
        mask += mask
    page &= mask - 1
    return page if page < pages else page & ((mask >> 1) - 1)


@cython.final
cdef class StateFields:
    """The fields of a bolt's states. ``owner``: the class of a state, whose own attributes no field hides. ``shape``:
    what the bolt keeps, with Arrow's ``types``, by which values may need a conversion; None: they need none."""

    def __init__(self, tuple names not None, owner=None, shape=None):
        self.names = names
        self.shape = shape
        self.places = {name: place for place, name in enumerate(names)}
        hidden = frozenset(dir(owner))
        self.readable = {name: place for name, place in self.places.items() if name not in hidden}
        self.kinds = None if shape is None else [KINDS.get(str(type), TAKES_OTHERS) for type in shape.types]

    cdef bint takes(self, Py_ssize_t place, object value) except -1:
        """Whether the value is certain to be read unchanged; others are converted, as ``state_values`` does."""
        cdef int overflow = 0
        cdef int kind
        if value is None or self.kinds is None:
            return True
        kind = self.kinds[place]
        if kind == TAKES_LONG:
            if not PyLong_CheckExact(value):
                return False
            PyLong_AsLongLongAndOverflow(value, &overflow)
            return overflow == 0
        if kind == TAKES_DOUBLE:
            return PyFloat_CheckExact(value)
        if kind == TAKES_BOOLEAN:
            return PyBool_Check(value)
        return kind == TAKES_STRING and PyUnicode_CheckExact(value) and PyUnicode_IS_ASCII(value)


cdef StateFields NO_FIELDS = StateFields(())


cdef class StateBase:
    """The values of a key, each an attribute. A subclass has ``_unknown(name)``, an exception, and
    ``_pystorm_conformed(name, value)``, for values that are not taken as they are."""

    def __cinit__(self, *args, **keywords):
        # Order: whatever a subclass does, nothing below meets None.
        self.fields = NO_FIELDS
        self._values = []

    cdef int begin(self, StateFields fields, tuple key, list values) except -1:
        # Fields are read and set by place, without a look at the length of the list: it never changes.
        if len(values) != len(fields.names):
            raise ValueError(f"{len(fields.names)} fields have as many values. Given: {len(values)}")
        self.fields, self._key, self._values = fields, key, values
        return 0

    def _pystorm_begin(self, StateFields fields not None, tuple key, list values not None):
        self.begin(fields, key, values)

    @property
    def _pystorm_fields(self):
        return self.fields

    def __getattribute__(self, name):
        place = self.fields.readable.get(name)
        if place is not None:
            return self._values[<Py_ssize_t>place]
        try:
            return PyObject_GenericGetAttr(self, name)
        except AttributeError:
            pass
        raise self._unknown(name)

    def __setattr__(self, name, value):
        place = self.fields.places.get(name)
        if place is None:
            raise self._unknown(name)
        if not self.fields.takes(place, value):
            value = self._pystorm_conformed(name, value)
        self._values[<Py_ssize_t>place] = value


cdef class StatesBase:
    """The states that one task of a bolt has read. ``shape``, ``store``, ``now``: as of ``KeyedStates``; ``made``: the
    class of a state. A subclass has ``due``, ``_as_read``, ``_copied``, ``_outside``, ``_ask`` and ``_settle``."""

    def __init__(self, shape, store, now, type made not None):
        self._shape = shape
        self._store = store
        self._now = now
        self.made = made
        self.fields = shape.state_fields
        self.positions = dict(shape.positions)
        self.is_plain = shape.is_plain
        self.has_doubles = not shape.is_plain or TAKES_DOUBLE in self.fields.kinds
        self.has_timers = shape.has_timers
        self._read = {}

    def run(self, process, bolt, tup):
        """``process(bolt, tup)`` with the state of the tuple's key, which stays as it was if that raises or the tuple
        fails. A tuple that says that a timer may be due goes to ``process_timer``, or nowhere."""
        if self._tup is not None:  # super().process(tup)
            return process(bolt, tup)
        self._tup, self.touched, self.has_failed = tup, None, False
        try:
            self.look_at(tup)
            if self.of_timers:
                key = self.due()
                found = None if key is None else bolt.process_timer(key)
            else:
                found = process(bolt, tup)
            if self.touched is not None and not self.is_plain:
                self._settle(self.touched)
            return found
        except BaseException:
            self.has_failed = True
            raise
        finally:
            # A tuple whose tree has timed out comes again.
            if self.has_failed or (type(tup) is Tuple and is_lost(<Tuple>tup)):
                self.roll_back()
            self._tup = self.touched = self.before = None

    def fail(self, tup=None):
        """A tuple has failed; None: the one that is processed."""
        if self._tup is not None and (tup is None or tup is self._tup or tup == self._tup.id):
            self.has_failed = True

    @property
    def current(self):
        """The state of the tuple's key. Raises ArgumentError outside of ``process``."""
        if self.touched is not None:
            return self.touched
        cdef StateBase state = self.state_of(self.key())
        self.before = state._values.copy() if self.is_plain else self._copied(state._values)
        self.touched = state
        return state

    def flush(self):
        """Stores what has changed since the last flush."""
        cdef StateBase state
        cdef tuple values
        for state in self._read.values():
            if self.has_timers:
                self._ask(state)
            if not self.is_plain:
                self._settle(state)  # a bolt may have kept a list, and changed it later
            values = tuple(state._values)
            if are_none(values):
                if state.stored is not None:
                    self._store.remove(state._key)
            elif state.stored is None or values != state.stored or (
                self.has_doubles and repr(values) != repr(state.stored)  # 0.0 and -0.0 are equal
            ):
                self._store.put(state._key, values)
        self._read.clear()

    def _state_of(self, tuple key not None):
        return self.state_of(key)

    def _key(self):
        return self.key()

    cdef StateBase state_of(self, tuple key):
        cdef StateBase state = self._read.get(key)
        cdef object stored
        if state is not None:
            return state
        state = <StateBase>StateBase.__new__(self.made)
        stored = self._store.get(key)
        if stored is None:
            state.begin(self.fields, key, [None] * len(self.fields.names))
        else:
            state.stored = tuple(stored)  # Spark's rows print otherwise
            values = list(state.stored)
            if not self.is_plain:
                state.stored, values = self._as_read(state.stored)
            state.begin(self.fields, key, values)
        self._read[key] = state
        return state

    @cython.boundscheck(True)  # a tuple made by hand may have fewer values
    cdef tuple key(self):
        cdef object values
        if self._tup is None:
            raise self._outside()
        values = self._tup.values
        if self.places is None:
            raise KeyError((self._tup.component, self._tup.stream))
        if len(self.places) == 1:
            return (part_of_key(values[<Py_ssize_t>self.places[0]]),)
        return tuple([part_of_key(values[<Py_ssize_t>place]) for place in self.places])

    cdef int look_at(self, object tup) except -1:
        """Many tuples of one source follow one another: what only the source says is found once."""
        cdef TupleSource source = (<Tuple>tup).source if type(tup) is Tuple else None
        if source is None or source is not self.source:
            where = (tup.component, tup.stream)
            self.of_timers = where == TIMERS
            self.places = self.positions.get(where)
            self.source = source
        return 0

    cdef int roll_back(self) except -1:
        if self.touched is not None:
            self.touched._values[:] = self.before
        return 0


cdef bint are_none(tuple values) noexcept:
    for value in values:
        if value is not None:
            return False
    return True
