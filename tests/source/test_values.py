"""Values of Python at the open stream become the values that Spark itself would make of them."""

import importlib

import pytest

from pystorm_source import read

pytestmark = [pytest.mark.campaign, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def values():
    """Drawn here: an import at the top would take seconds of each process that collects the tests."""
    return importlib.import_module("tests.source.values")


def plain(value):
    """Comparable by ``==``: NaN and -0.0 by their looks, maps without their order, bytes of either class."""
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return sorted((repr(plain(key)), plain(item)) for key, item in value.items())
    return bytes(value) if isinstance(value, bytearray) else repr(value)


def test_the_rows_are_varied(values):
    columns = list(zip(*values.ValuesSpout.rows, strict=True))[1:]
    for ddl, column in zip(values.TYPES, columns, strict=True):
        kept = [value for value in column if value is not None]
        assert len(kept) > values.ROWS / 2, ddl
        assert len({repr(value) for value in kept}) > 1, ddl
        if ddl.startswith("struct"):
            assert {type(value).__name__ for value in kept} >= {"tuple", "list", "dict", "Row", "Thing"}, ddl


@pytest.mark.spark
def test_what_create_data_frame_takes_is_taken_to_the_equal_value(spark, values):
    theirs = spark.createDataFrame(values.ValuesSpout.rows, values.SCHEMA, verifySchema=True).orderBy("i").collect()
    ours = read(spark, values.Values).orderBy("i").collect()
    assert len(ours) == len(theirs) == values.ROWS
    for given, expected, got in zip(values.ValuesSpout.rows, theirs, ours, strict=True):
        for ddl, value, one, other in zip(["long", *values.TYPES], given, expected, got, strict=True):
            assert plain(other) == plain(one), (ddl, value)
