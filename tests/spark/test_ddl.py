"""Spark's type names, read without a JVM."""

import pytest
from pyspark.sql import types as t

from pystorm_source.errors import SchemaError
from pystorm_source.spark.ddl import fits, parse_type

READ = [
    ("string", t.StringType()),
    ("STRING", t.StringType()),
    ("varchar(10)", t.StringType()),
    ("boolean", t.BooleanType()),
    ("tinyint", t.ByteType()),
    ("short", t.ShortType()),
    ("int", t.IntegerType()),
    ("bigint", t.LongType()),
    ("float", t.FloatType()),
    ("double", t.DoubleType()),
    ("binary", t.BinaryType()),
    ("date", t.DateType()),
    ("timestamp", t.TimestampType()),
    ("timestamp_ntz", t.TimestampNTZType()),
    ("void", t.NullType()),
    ("decimal", t.DecimalType(10, 0)),
    ("decimal(5)", t.DecimalType(5, 0)),
    (" numeric ( 38 , 18 ) ", t.DecimalType(38, 18)),
    ("interval day to second", t.DayTimeIntervalType(0, 3)),
    ("interval hour", t.DayTimeIntervalType(1, 1)),
    ("array<int>", t.ArrayType(t.IntegerType())),
    ("map<string, array<long>>", t.MapType(t.StringType(), t.ArrayType(t.LongType()))),
    ("struct<>", t.StructType()),
    (
        "struct<a: int, `b ``c`: string not null, d struct<e:date>>",
        t.StructType(
            [
                t.StructField("a", t.IntegerType()),
                t.StructField("b `c", t.StringType(), False),
                t.StructField("d", t.StructType([t.StructField("e", t.DateType())])),
            ]
        ),
    ),
]


@pytest.mark.parametrize(("text", "expected"), READ, ids=[text for text, _ in READ])
def test_read(text, expected):
    assert parse_type(text, "field 'x'") == (expected, True)


def test_not_null():
    assert parse_type("array<int> Not Null", "field 'x'") == (t.ArrayType(t.IntegerType()), False)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("sting", "'sting' is none that can leave a topology; take one of bigint, .*decimal"),
        ("int int", "unexpected 'int'"),
        ("int not", "null after not is missing"),
        ("int not nil", "'not' is followed by 'null'"),
        ("array", "'<' is missing"),
        ("array<int", "'>' is missing"),
        ("array<>", "a type is needed where '>' stands"),
        ("array<int not null>", "'>' is needed where 'not' stands"),
        ("map<int>", "',' is needed where '>' stands"),
        ("decimal(39,1)", "a decimal has at most 38 digits"),
        ("decimal(3,4)", "a decimal has at most 38 digits"),
        ("decimal(1,1,1)", "a decimal has at most 38 digits"),
        ("decimal(a)", "a number is needed where 'a' stands"),
        ("interval year to month", "an interval is one of day, hour, minute, second"),
        ("interval second to day", "second is finer than day"),
        ("struct<a>", "a type is needed where '>' stands"),
        ("int;drop", "unexpected ';'"),
        ("variant", "'variant' is none"),
    ],
)
def test_refused(text, says):
    with pytest.raises(SchemaError, match=f"the type of field 'x' of a.b cannot be read: {says}") as refused:
        parse_type(text, "field 'x' of a.b")
    assert str(refused.value).endswith(f"Given: {text!r}")


@pytest.mark.spark
def test_same_as_spark_reads_them(spark):
    for text, expected in READ:
        if "varchar" not in text and text != "struct<>":  # a schema must not be varchar
            assert t._parse_datatype_string(f"x {text}")["x"].dataType == expected, text


def read(text):
    return parse_type(text, "x")[0]


@pytest.mark.parametrize(
    ("declared", "wanted"),
    [
        ("long", "int"),
        ("int", "long"),
        ("long", "double"),
        ("double", "float"),
        ("double", "long"),
        ("long", "decimal(20,0)"),
        ("boolean", "int"),
        ("long", "string"),
        ("date", "string"),
        ("timestamp", "timestamp_ntz"),
        ("void", "map<int,int>"),
        ("array<long>", "array<int>"),
        ("map<string,long>", "map<string,double>"),
        ("struct<a:long,b:int>", "struct<a:int,b:string>"),
        ("interval day to second", "interval hour"),
    ],
)
def test_fits(declared, wanted):
    assert fits(read(declared), read(wanted))


@pytest.mark.parametrize(
    ("declared", "wanted"),
    [
        ("string", "long"),
        ("string", "binary"),
        ("binary", "string"),
        ("array<int>", "string"),
        ("array<int>", "int"),
        ("array<string>", "array<int>"),
        ("struct<a:int>", "struct<b:int>"),
        ("struct<a:int>", "struct<a:int,b:int>"),
        ("long", "timestamp"),
        ("date", "timestamp"),
        ("long", "boolean"),
        ("map<string,int>", "struct<a:int>"),
    ],
)
def test_does_not_fit(declared, wanted):
    assert not fits(read(declared), read(wanted))
