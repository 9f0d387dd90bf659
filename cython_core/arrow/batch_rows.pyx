"""Non-blocking; one thread at a time (the GIL is enough). The rows of a record batch as tuples of Python values.

    BatchRows(batch).rows(0, 256)  ≡  list(zip(*[column.to_pylist() for column in batch.columns]))[0:256]

but for maps, which are dicts as an emit has them. Bool, ints, floats, string, binary, date and timestamp are read from
Arrow's buffers as they lie, lists, structs, maps and dictionaries of them by their parts. What has another Python form
(decimal, time, duration, nanoseconds) Arrow itself converts. A reader looks up buffers and
types once per batch, so that a slice of rows costs what its values cost.
"""

cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.datetime cimport date_new, datetime_new, import_datetime
from cpython.list cimport PyList_New, PyList_SET_ITEM
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

import pyarrow as pa
from pyarrow import types

import_datetime()

cdef extern from "Python.h":
    void PyObject_GC_UnTrack(PyObject *tracked)

cdef enum:
    READ_NULL, READ_OBJECT, READ_BOOL, READ_INT8, READ_INT16, READ_INT32, READ_INT64
    READ_UINT8, READ_UINT16, READ_UINT32, READ_UINT64, READ_FLOAT32, READ_FLOAT64
    READ_STRING, READ_BINARY, READ_LARGE_STRING, READ_LARGE_BINARY, READ_FIXED_BINARY
    READ_DATE, READ_TIMESTAMP, READ_LIST, READ_LARGE_LIST, READ_STRUCT, READ_DICTIONARY, READ_MAP

cdef frozenset PARTS = frozenset([READ_OBJECT, READ_LIST, READ_LARGE_LIST, READ_STRUCT, READ_DICTIONARY, READ_MAP])

# Days since 1970 of 0001-01-01 and 9999-12-31, what Python's dates reach.
cdef int64_t FIRST_DAY = -719162
cdef int64_t LAST_DAY = 2932896

# By the id of the type: a type's own hash is that of its name, which is made anew each time.
cdef dict KINDS = {
    type.id: kind
    for type, kind in (
        (pa.null(), (READ_NULL, 0)),
        (pa.bool_(), (READ_BOOL, 0)),
        (pa.int8(), (READ_INT8, 1)),
        (pa.int16(), (READ_INT16, 2)),
        (pa.int32(), (READ_INT32, 4)),
        (pa.int64(), (READ_INT64, 8)),
        (pa.uint8(), (READ_UINT8, 1)),
        (pa.uint16(), (READ_UINT16, 2)),
        (pa.uint32(), (READ_UINT32, 4)),
        (pa.uint64(), (READ_UINT64, 8)),
        (pa.float32(), (READ_FLOAT32, 4)),
        (pa.float64(), (READ_FLOAT64, 8)),
        (pa.string(), (READ_STRING, 0)),
        (pa.binary(), (READ_BINARY, 0)),
        (pa.large_string(), (READ_LARGE_STRING, 0)),
        (pa.large_binary(), (READ_LARGE_BINARY, 0)),
        (pa.date32(), (READ_DATE, 4)),
    )
}
# pyarrow >= 16 has them.
cdef dict VIEWS = {
    getattr(pa, name)().id: like
    for name, like in (("string_view", pa.large_string()), ("binary_view", pa.large_binary()))
    if hasattr(pa, name)
}
# Their width is that of a value.
cdef frozenset SIMPLE = frozenset([kind for kind, width in KINDS.values() if width > 0])
cdef dict UNITS = {"s": 1, "ms": 1_000, "us": 1_000_000}  # nanoseconds: Python has no such type, Arrow decides


cdef tuple kind_of(object type):
    """The reader kind of a type, and its width or units."""
    found = KINDS.get(type.id)
    if found is not None:
        return found
    if types.is_timestamp(type) and type.unit in UNITS:
        return READ_TIMESTAMP, UNITS[type.unit]
    if types.is_fixed_size_binary(type):
        return READ_FIXED_BINARY, type.byte_width
    if types.is_list(type):
        return READ_LIST, 0
    if types.is_large_list(type):
        return READ_LARGE_LIST, 0
    if types.is_map(type):
        return READ_MAP, 0
    if types.is_struct(type) and len({field.name for field in type}) == type.num_fields:
        return READ_STRUCT, 0
    if types.is_dictionary(type) and not types.is_nested(type.value_type):
        return READ_DICTIONARY, 0
    return READ_OBJECT, 0


cdef const uint8_t *address_of(list buffers, Py_ssize_t at):
    if at >= len(buffers) or buffers[at] is None:
        return NULL
    return <const uint8_t *><size_t>buffers[at].address


cdef ColumnReader reader_of(object array):
    cdef ColumnReader reader = ColumnReader.__new__(ColumnReader)
    cdef list buffers
    type = array.type
    reader.array = array
    reader.kind, reader.width = kind_of(type)
    reader.offset = array.offset
    if reader.kind == READ_OBJECT or reader.kind == READ_NULL:
        return reader
    buffers = array.buffers()
    reader.validity = address_of(buffers, 0) if array.null_count > 0 else NULL
    reader.values = address_of(buffers, 1)
    reader.heap = address_of(buffers, 2)
    if reader.kind == READ_TIMESTAMP and type.tz is not None:
        reader.zone = pa.lib.string_to_tzinfo(type.tz)
        reader.utc = type.tz in ("UTC", "Etc/UTC", "+00:00")
    elif reader.kind == READ_LIST or reader.kind == READ_LARGE_LIST:
        reader.parts = [reader_of(array.values)]
    elif reader.kind == READ_MAP:
        reader.parts = [reader_of(array.keys), reader_of(array.items)]
    elif reader.kind == READ_STRUCT:
        reader.names = tuple([field.name for field in type])
        reader.parts = [reader_of(array.field(i)) for i in range(type.num_fields)]
    elif reader.kind == READ_DICTIONARY:
        reader.indices = reader_of(array.indices)
        reader.parts = array.dictionary.to_pylist()
    return reader


cdef inline bint bit(const uint8_t *bits, int64_t i) noexcept nogil:
    return bits[i >> 3] >> (i & 7) & 1


@cython.final
cdef class ColumnReader:
    """Reads the values of one array as ``to_pylist`` gives them."""

    cdef object at(self, int64_t i):
        """Value i of the array."""
        cdef int64_t p = self.offset + i
        cdef const int32_t *short_ends
        cdef const int64_t *ends
        cdef int kind = self.kind
        if self.validity is not NULL and not bit(self.validity, p):
            return None
        if kind == READ_INT64:
            return (<const int64_t *>self.values)[p]
        if kind == READ_STRING:
            short_ends = <const int32_t *>self.values + p
            return PyUnicode_DecodeUTF8(<const char *>self.heap + short_ends[0], short_ends[1] - short_ends[0], NULL)
        if kind == READ_FLOAT64:
            return (<const double *>self.values)[p]
        if kind == READ_INT32:
            return (<const int32_t *>self.values)[p]
        if kind == READ_TIMESTAMP:
            return self.instant(i)
        if kind == READ_BOOL:
            return True if bit(self.values, p) else False
        if kind == READ_BINARY:
            short_ends = <const int32_t *>self.values + p
            return PyBytes_FromStringAndSize(<const char *>self.heap + short_ends[0], short_ends[1] - short_ends[0])
        if kind == READ_DATE:
            return self.day(i)
        if kind == READ_DICTIONARY:
            return self.parts[<Py_ssize_t>self.indices.at(i)]
        if kind == READ_LIST:
            short_ends = <const int32_t *>self.values + p
            return self.items(short_ends[0], short_ends[1])
        if kind == READ_STRUCT:
            return self.members(i)
        if kind == READ_MAP:
            short_ends = <const int32_t *>self.values + p
            return self.entries(short_ends[0], short_ends[1])
        if kind == READ_FLOAT32:
            return <double>(<const float *>self.values)[p]
        if kind == READ_INT16:
            return (<const int16_t *>self.values)[p]
        if kind == READ_INT8:
            return (<const int8_t *>self.values)[p]
        if kind == READ_UINT8:
            return self.values[p]
        if kind == READ_UINT16:
            return (<const uint16_t *>self.values)[p]
        if kind == READ_UINT32:
            return (<const uint32_t *>self.values)[p]
        if kind == READ_UINT64:
            return (<const uint64_t *>self.values)[p]
        if kind == READ_FIXED_BINARY:
            return PyBytes_FromStringAndSize(<const char *>self.values + p * self.width, self.width)
        if kind == READ_NULL:
            return None
        ends = <const int64_t *>self.values + p
        if kind == READ_LARGE_STRING:
            return PyUnicode_DecodeUTF8(<const char *>self.heap + ends[0], ends[1] - ends[0], NULL)
        if kind == READ_LARGE_BINARY:
            return PyBytes_FromStringAndSize(<const char *>self.heap + ends[0], ends[1] - ends[0])
        if kind == READ_LARGE_LIST:
            return self.items(ends[0], ends[1])
        return self.array[i].as_py()

    cdef int64_t weight(self) except -1:
        """Bytes of the array, about."""
        cdef int64_t rows = len(self.array)
        cdef const int32_t *ends = <const int32_t *>self.values + self.offset
        if rows > 0 and (self.kind == READ_STRING or self.kind == READ_BINARY):
            return 4 * rows + ends[rows] - ends[0]
        if self.kind in SIMPLE:
            return self.width * rows
        return self.array.nbytes

    cdef object day(self, int64_t i):
        cdef int year, month, day
        cdef int64_t days = (<const int32_t *>self.values)[self.offset + i]
        if not FIRST_DAY <= days <= LAST_DAY:
            return self.array[i].as_py()  # raises
        civil(days, &year, &month, &day)
        return date_new(year, month, day)

    cdef object instant(self, int64_t i):
        """Order: as Arrow, the time of day in UTC first, and then what the zone makes of it."""
        cdef int year, month, day
        cdef int64_t units = (<const int64_t *>self.values)[self.offset + i]
        cdef int64_t a_day = self.width * 86_400
        cdef int64_t days = units // a_day
        cdef int64_t rest = units - days * a_day
        cdef int64_t seconds
        if rest < 0:
            rest += a_day
            days -= 1
        if not FIRST_DAY < days < LAST_DAY:  # at the ends a zone may lead beyond them
            return self.array[i].as_py()
        civil(days, &year, &month, &day)
        seconds = rest // self.width
        made = datetime_new(
            year, month, day, seconds // 3600, seconds // 60 % 60, seconds % 60,
            (rest - seconds * self.width) * (1_000_000 // self.width), self.zone, 0,
        )
        return made if self.zone is None or self.utc else self.zone.fromutc(made)

    cdef object items(self, int64_t start, int64_t end):
        cdef ColumnReader part = <ColumnReader>self.parts[0]
        cdef int64_t i
        if part.kind == READ_OBJECT:
            return part.array.slice(start, end - start).to_pylist()
        return [part.at(i) for i in range(start, end)]

    cdef object entries(self, int64_t start, int64_t end):
        cdef ColumnReader keys = <ColumnReader>self.parts[0]
        cdef ColumnReader values = <ColumnReader>self.parts[1]
        cdef int64_t i
        cdef list pairs = [(keys.at(i), values.at(i)) for i in range(start, end)]
        try:
            return dict(pairs)
        except TypeError:  # a key that is a list, say
            return pairs

    cdef object members(self, int64_t i):
        cdef dict found = {}
        cdef Py_ssize_t place = 0
        for name in self.names:
            found[name] = (<ColumnReader>self.parts[place]).at(i)
            place += 1
        return found


cdef int civil(int64_t days, int *year, int *month, int *day) noexcept nogil:
    """The date of a day that Python's dates reach; by 400 years from March on, so that the leap day is the last one."""
    cdef int64_t shifted = days + 719468  # since March of the year 0, so never below 0
    cdef int64_t era = shifted // 146097
    cdef int64_t of_era = shifted - era * 146097
    cdef int64_t year_of_era = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
    cdef int64_t of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    cdef int64_t shifted_month = (5 * of_year + 2) // 153
    day[0] = <int>(of_year - (153 * shifted_month + 2) // 5 + 1)
    month[0] = <int>(shifted_month + 3 if shifted_month < 10 else shifted_month - 9)
    year[0] = <int>(year_of_era + era * 400 + (month[0] <= 2))
    return 0


@cython.final
cdef class BatchRows:
    """``BatchRows(batch)``: the rows of a ``pyarrow.RecordBatch``, asked for piece by piece."""

    def __init__(self, batch not None):
        self.batch = batch
        self.readers = [reader_of(column) for column in batch.columns]
        self.plain = all([(<ColumnReader>reader).kind not in PARTS for reader in self.readers])

    def rows(self, Py_ssize_t start, Py_ssize_t end):
        """Rows ``start`` to ``end``, as tuples. Raises IndexError for rows that the batch does not have."""
        self.check_rows(start, end)
        return self.between(start, end)

    def columns(self, Py_ssize_t start, Py_ssize_t end):
        """The same rows: of each column a tuple of values. Raises as ``rows``."""
        self.check_rows(start, end)
        return self.by_column(start, end)

    cdef int check_rows(self, Py_ssize_t start, Py_ssize_t end) except -1:
        if not 0 <= start <= end <= self.batch.num_rows:
            raise IndexError(f"a batch of {self.batch.num_rows} rows is asked for others; Given: {start}, {end}")
        return 0

    cdef tuple shown(self, Py_ssize_t i):
        """(Row i, field, exception): of the first value that cannot be read, in whose place there is text; None and
        None if there is none."""
        cdef list row = []
        field = cause = None
        for place, reader in enumerate(self.readers):
            try:
                row.append((<ColumnReader>reader).at(i))
            except Exception as error:
                row.append(f"<{(<ColumnReader>reader).array.type} that cannot be read>")
                if field is None:
                    field, cause = self.batch.schema.field(place), error
        return tuple(row), field, cause

    cdef int64_t weight(self) except -1:
        """Bytes of the batch, about."""
        cdef int64_t weight = 0
        for reader in self.readers:
            weight += (<ColumnReader>reader).weight()
        return weight

    cdef list between(self, Py_ssize_t start, Py_ssize_t end, const int *places=NULL, object only=None):
        """Rows ``start`` to ``end`` of the batch, or of those at ``places``. ``only``: the columns to read; None stands
        in the others."""
        cdef Py_ssize_t width = len(self.readers)
        cdef Py_ssize_t count = end - start
        cdef Py_ssize_t i, place
        cdef list rows = PyList_New(count)
        cdef list given
        cdef tuple row
        cdef ColumnReader reader
        for i in range(count):
            row = PyTuple_New(width)
            Py_INCREF(row)
            PyList_SET_ITEM(rows, i, row)
        for place in range(width):
            reader = <ColumnReader>self.readers[place]
            skipped = only is not None and place not in only
            given = None
            if reader.kind == READ_OBJECT and not skipped:
                given = objects_of(reader.array, start, count, places)
            for i in range(count):
                if skipped:
                    value = None
                elif given is not None:
                    value = given[i]
                else:
                    value = reader.at(start + i if places is NULL else places[start + i])
                Py_INCREF(value)
                PyTuple_SET_ITEM(<tuple>rows[i], place, value)
        if self.plain:  # as the collector does to tuples of plain values, once it has seen them
            for i in range(count):
                PyObject_GC_UnTrack(<PyObject *>rows[i])
        return rows

    cdef tuple by_column(self, Py_ssize_t start, Py_ssize_t end, const int *places=NULL):
        """The same rows: of each column a tuple of values."""
        return tuple([column_of(<ColumnReader>reader, start, end - start, places) for reader in self.readers])


cdef tuple column_of(ColumnReader reader, Py_ssize_t start, Py_ssize_t count, const int *places):
    cdef tuple values
    cdef Py_ssize_t i
    if reader.kind == READ_OBJECT:
        return tuple(objects_of(reader.array, start, count, places))
    values = PyTuple_New(count)
    for i in range(count):
        value = reader.at(start + i if places is NULL else places[start + i])
        Py_INCREF(value)
        PyTuple_SET_ITEM(values, i, value)
    return values


cdef list objects_of(object array, Py_ssize_t start, Py_ssize_t count, const int *places):
    if places is NULL:
        return array.slice(start, count).to_pylist()
    return taken(array, pa.array([places[start + i] for i in range(count)], pa.int32())).to_pylist()


def batch_at(batch, places):
    """The rows of a record batch at these places, an int32 array."""
    try:
        return batch.take(places)
    except NotImplementedError:
        columns = [taken(column, places) for column in batch.columns]
        return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


cdef object taken(object array, object places):
    """The values at these places. Workaround (pyarrow 26): it takes none out of views and run-end encoded arrays."""
    try:
        return array.take(places)
    except NotImplementedError:
        pass
    type = without_views(array.type)
    if type != array.type:
        return array.cast(type).take(places).cast(array.type)
    # Not of views: each piece would bring all of their buffers.
    return pa.concat_arrays([array.slice(start, count) for start, count in runs_of(places.to_pylist())])


cdef object without_views(object type):
    """The type of the same values without views of text or bytes."""
    if type.id in VIEWS:
        return VIEWS[type.id]
    if types.is_list(type):
        return pa.list_(type.value_field.with_type(without_views(type.value_type)))
    if types.is_large_list(type):
        return pa.large_list(type.value_field.with_type(without_views(type.value_type)))
    if types.is_struct(type):
        return pa.struct([field.with_type(without_views(field.type)) for field in type])
    return type


cdef list runs_of(list places):
    """(First, how many) of those that follow one another."""
    cdef list runs = []
    start = count = 0
    for place in places:
        if count > 0 and start + count == place:
            count += 1
            continue
        if count > 0:
            runs.append((start, count))
        start, count = place, 1
    if count > 0:
        runs.append((start, count))
    return runs
