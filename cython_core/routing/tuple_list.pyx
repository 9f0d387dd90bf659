"""The tuples that one call of ``process_many`` is given, one by one or as columns.

Threading law: that of the bolt that was given it.
"""

cimport cython
from cpython.list cimport PyList_GET_SIZE
from cpython.tuple cimport PyTuple_GET_SIZE

from cython_core.tuples.tuple cimport ColumnSlice, Tuple, TupleSource, append_rows

from cython_core.arrow.row_error import coded, shown


cdef TupleList list_of(list tuples, Py_ssize_t rows, bint single):
    """``tuples``: shared with the executor. ``rows``: that they carry; ``single``: whether each is one of them."""
    cdef TupleList made = TupleList.__new__(TupleList)
    made.tuples = tuples
    made.rows = rows
    made.single = single
    return made


@cython.final
@cython.auto_pickle(True)
cdef class TupleList:
    """What ``process_many`` is given: tuples, as a sequence, whose values can be read as columns.

    A column costs less than its tuples: rows that ``emit_many`` has sent are made tuples only if the bolt looks at
    them one by one.

    Args:
        tuples (Iterable[Tuple]): made by hand, in unit tests of bolts. Defaults to ().

    Raises:
        TypeError: one of them is no Tuple.

    Example:
        >>> tups = TupleList([Tuple(1, "words", values=("cow", 2)), Tuple(2, "words", values=("dog", 1))])
        >>> len(tups), tups[0].values, tups.column(0)
        (2, ('cow', 2), ['cow', 'dog'])
    """

    def __init__(self, tuples=()):
        self.tuples = list(tuples)
        for each in self.tuples:
            if not isinstance(each, Tuple):
                raise coded(TypeError, "PYSTORM_INVALID_ANCHOR", f"a TupleList is one of Tuples; Given: {shown(each)}")
        self.rows = PyList_GET_SIZE(self.tuples)
        self.single = True

    cdef list all(self):
        """The tuples, one for each row. Order: in place, as the executor holds the same list."""
        cdef list rows
        cdef Tuple tup
        if not self.single:
            rows = []
            for tup in self.tuples:
                if isinstance(tup.payload, ColumnSlice):
                    append_rows(rows, tup)
                else:
                    rows.append(tup)
            self.tuples[:] = rows
            self.single = True
        return self.tuples

    def column(self, field):
        """The values of one field, a value for each tuple, in their order.

        Args:
            field (str | int): the field's name, or its place in the stream.

        Returns:
            list: the values; the caller's own list.

        Raises:
            ValueError: a stream of one of the tuples has no such field.

        Example:
            >>> TupleList([Tuple(1, "words", values=("cow", 2)), Tuple(2, "words", values=("dog", 1))]).column(1)
            [2, 1]
        """
        cdef list values = []
        cdef TupleSource source = None
        cdef Py_ssize_t place = -1
        cdef Tuple tup
        for tup in self.tuples:
            if tup.source is not source:
                source = tup.source
                place = place_of(tup, field)
            if isinstance(tup.payload, ColumnSlice):
                values += (<ColumnSlice>tup.payload).column(place)
            else:
                values.append(tup.payload[place])
        return values

    def __len__(self):
        return self.rows

    def __iter__(self):
        return iter(self.all())

    def __reversed__(self):
        return reversed(self.all())

    def __contains__(self, tup):
        return tup in self.all()

    def __getitem__(self, index):
        return self.all()[index]

    def __repr__(self):
        return f"TupleList({self.all()!r})"


cdef Py_ssize_t place_of(Tuple tup, object field) except -1:
    """The place of the field in the values of the tuple."""
    cdef tuple fields = tup.source.fields
    cdef Py_ssize_t arity
    if fields is None:  # it was made by hand
        fields = tuple(getattr(tup.payload, "_fields", ()))
    if isinstance(field, str):
        if field in fields:
            return fields.index(field)
    elif isinstance(field, int):
        arity = PyTuple_GET_SIZE(fields) if fields else len(tup.payload)
        if 0 <= field < arity:
            return field
    raise coded(
        ValueError,
        "PYSTORM_UNKNOWN_FIELD",
        f"tuples of stream {tup.stream!r} of {tup.component!r} have the fields {list(fields)}: name one of them, or "
        f"its place from 0 on. Given: {shown(field)}"
    )
