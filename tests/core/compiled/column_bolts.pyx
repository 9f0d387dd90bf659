"""Reads columns in C and says what it has read."""

from cython_core.compiled.columns cimport (
    ArrowBase, double_column, doubles, is_null, long_column, longs, text_column, texts,
)

import pyarrow as pa

from pystorm_source import ArrowBolt


def read_longs(batch, place):
    cdef long_column found = longs(batch, place)
    return [None if is_null(&found, i) else found.values[i] for i in range(found.rows)]


def read_doubles(batch, place):
    cdef double_column found = doubles(batch, place)
    return [None if is_null(&found, i) else found.values[i] for i in range(found.rows)]


def read_texts(batch, place):
    cdef text_column found = texts(batch, place)
    return [
        None if is_null(&found, i) else found.bytes[found.ends[i]:found.ends[i + 1]] for i in range(found.rows)
    ]


cdef class PassOn(ArrowBase):
    def process_batch(self, batch):
        cdef long_column numbers = longs(batch, 0)
        cdef Py_ssize_t i
        cdef list negative = [numbers.values[i] < 0 for i in range(numbers.rows)]
        if any(negative):
            self.fail(batch, rows=negative)
            batch = batch.filter(pa.array([not each for each in negative]))
        if batch.num_rows > 0:
            self.emit_batch(batch)


class NotNegative(PassOn, ArrowBolt):
    outputs = ["n long"]
