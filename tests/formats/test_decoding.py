"""Keys and values decoded: bytes, text and JSON, for tuples and for Arrow, and what becomes of those that cannot be."""

import datetime
import decimal
import json
import logging
import os
import sys

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pystorm_source.errors import OptionError, SchemaError
from pystorm_source.formats.decoding import Decoding, column_type, decoder_of
from pystorm_source.formats.options import DecodingOptions
from pystorm_source.options import parse, shown
from pystorm_source.types.arrow import arrow_type, ddl_of
from tests.formats.decoded import agreed, ddl_and_values, plain

UTC = datetime.UTC


def options(**given):
    return parse(DecodingOptions, {key.replace("_", "."): value for key, value in given.items()})


def decoder(format, schema=""):
    return decoder_of(options(value_format=format, value_schema=schema), "value")


def decoded(format, data, schema=""):
    """The values, and why others are none; alike as tuples and as Arrow."""
    return agreed(decoder(format, schema), data)


def test_bytes_stay_as_they_are():
    assert decoded("bytes", [b"\xff\0", b"", None]) == ([b"\xff\0", b"", None], {})


def test_strings_are_utf8_and_tombstones_stay_null():
    assert decoded("string", ["käse".encode(), b"", None]) == (["käse", "", None], {})
    found, bad = decoded("string", [b"a", b"b\xff", None, b"\xed\xa0\x80", b"c"])
    assert found == ["a", None, None, None, "c"]
    assert bad == {
        1: "byte 0xff at position 1 is not UTF-8",
        3: "byte 0xed at position 0 is not UTF-8",
    }


@given(st.lists(st.none() | st.binary(max_size=6)))
def test_any_bytes_are_text_or_named(data):
    found, bad = decoded("string", data)
    for index, (value, text) in enumerate(zip(found, data, strict=True)):
        assert (index in bad) == (value is None and text is not None)
        assert value is None or value.encode() == text


def test_json_fields_go_by_name():
    data = [b'{"item": "tea", "id": 1}', b'{"id": null, "more": [{}]}', b"{}", None, b"null"]
    found, bad = decoded("json", data, "id bigint, item string")
    assert found == [{"id": 1, "item": "tea"}, {"id": None, "item": None}, {"id": None, "item": None}, None, None]
    assert not bad


def test_json_may_be_spread_over_lines_and_framed_by_confluents_serializer():
    found, bad = decoded("json", [b'{\n "id":\n 1}\n', b'\0\0\0\0\x07{"id": 2}'], "id bigint")
    assert found == [{"id": 1}, {"id": 2}] and not bad


def test_json_without_a_schema_is_what_json_says():
    bad = {}
    data = [b'{"a": [1, 2.5, null]}', b"5", b"nonsense", None]
    assert decoder("json").values(data, bad) == [{"a": [1, 2.5, None]}, 5, None, None]
    assert list(bad) == [2]


@pytest.mark.parametrize(
    ("ddl", "text", "value"),
    [
        ("timestamp", '"2024-02-29T12:00:00"', datetime.datetime(2024, 2, 29, 12, tzinfo=UTC)),
        ("timestamp", '"2024-02-29T12:00:00+02:00"', datetime.datetime(2024, 2, 29, 10, tzinfo=UTC)),
        ("timestamp_ntz", '"2024-02-29T12:00:00"', datetime.datetime(2024, 2, 29, 12)),
        ("date", '"2024-02-29"', datetime.date(2024, 2, 29)),
        ("decimal(10,2)", "1.5", decimal.Decimal("1.50")),
        ("decimal(10,2)", '"1.50"', decimal.Decimal("1.50")),
        ("decimal(38,0)", "1" * 38, decimal.Decimal("1" * 38)),
        ("interval day to second", '"P1DT0.000001S"', datetime.timedelta(days=1, microseconds=1)),
        ("time", '"12:00:00.5"', datetime.time(12, 0, 0, 500_000)),
        ("array<void>", "[null]", [None]),
        ("binary", '"AP8="', b"\0\xff"),
        ("float", "0.1", 0.10000000149011612),
        ("double", "1", 1.0),
        ("tinyint", "-128", -128),
        ("array<timestamp>", '["2024-02-29T12:00:00", null]', [datetime.datetime(2024, 2, 29, 12, tzinfo=UTC), None]),
        ("map<string,decimal(3,1)>", '{"a": 1, "b": null}', {"a": decimal.Decimal("1.0"), "b": None}),
        ("map<int,string>", '{"7": "x"}', {7: "x"}),
        ("struct<a: struct<b: array<int>>>", '{"a": {"b": [1]}}', {"a": {"b": [1]}}),
        ("`odd name` int", '{"odd name": 1}', {"odd name": 1}),
    ],
)
def test_json_of_every_type(ddl, text, value):
    found, bad = decoded("json", [text.encode()], ddl)
    assert found == [value] and not bad, bad
    assert repr(found) == repr([value])


@pytest.mark.parametrize(
    ("ddl", "text", "says"),
    [
        ("id int", '{"id": 3000000000}', "Expected `int` <= 2147483647"),
        ("id int", '{"id": 1.5}', "Expected `int | null`, got `float`"),
        ("id int", '{"id": 1} {"id": 2}', "JSON is malformed"),
        ("id int", '{"id": 1', "truncated"),
        ("id int", "[1]", "Expected `object | null`, got `array`"),
        ("id int", "", "truncated"),
        ("id int not null", "{}", "missing required field `id`"),
        ("id int not null", '{"id": null}', "Expected `int`, got `null`"),
        ("a double", '{"a": NaN}', "malformed"),
        ("a float", '{"a": 1e39}', "field 'a': 1e+39 does not fit float"),
        ("a decimal(4,2)", '{"a": 123.45}', "field 'a': 123.45 does not fit decimal(4,2)"),
        ("a decimal(38,10)", '{"a": "1234567890123456789012345678.12345678901"}', "does not fit decimal(38,10)"),
        ("a timestamp_ntz", '{"a": "2024-02-29T12:00:00Z"}', "no timezone component"),
        ("a timestamp", '{"a": "0001-01-01T00:00:00+10:00"}', "field 'a': 0001-01-01T00:00:00+10:00 in UTC is not"),
        (
            "a array<struct<b: decimal(3,1)>>",
            '{"a": [{"b": 1}, {"b": 1.25}]}',
            "field 'a': an element: field 'b': 1.25",
        ),
        ("a string", '{"a": "\\ud800"}', ""),
    ],
)
def test_json_that_does_not_fit_says_why(ddl, text, says):
    found, bad = decoded("json", [b"null", text.encode()], ddl)
    assert found == [None, None] and list(bad) == [1]
    assert says in bad[1]


def test_json_that_nests_too_deeply_for_the_interpreter_is_named():
    """From Python 3.14 on what nobody asked for may nest as deeply as the C stack allows, so it may also be read."""
    found, bad = decoded("json", [b"null", b'{"more": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"], "id int")
    assert (found, list(bad)) in (([None, None], [1]), ([None, {"id": None}], []))
    assert "recursion" in bad[1] if bad else sys.version_info >= (3, 14)


@settings(max_examples=500 if os.environ.get("PYSTORM_DEEP") else 25, deadline=None)
@given(st.data())
def test_json_of_any_schema_comes_back(data):
    ddl, values = data.draw(ddl_and_values(avro=False))
    written = [None if value is None else msgspec.json.encode(value) for value in values]
    found, bad = decoded("json", written, ddl)
    assert not bad
    assert found == values


@settings(max_examples=5000 if os.environ.get("PYSTORM_DEEP") else 100, deadline=None)
@given(st.lists(st.none() | st.binary(max_size=20) | st.text('{}[]",:ab1.\n e-').map(str.encode), max_size=5))
def test_any_bytes_are_json_or_named(data):
    schema = "a int, b struct<b: array<double>>, `1` map<string,string>"
    found, bad = decoded("json", data, schema)
    for index, (value, text) in enumerate(zip(found, data, strict=True)):
        if value is not None:
            assert isinstance(json.loads(text), dict)
        elif index not in bad:
            assert text is None or json.loads(text) is None


ODD = [
    b'{"a": 1}', b'{"a": 1, "b": "x", "c": [1.5, null], "d": {"e": true}}', b'{"a": 1}{"a": 2}', b'{"a": 1}\n{"a": 2}',
    b"{}", b"", b" ", b"{", b"}", b'{"a":', b"1}", b'{"a": 1} ', b'{"c": [NaN]}', b'{"c": [-Infinity]}', b'{"x": NaN}',
    b'{"a": 1, "a": 2}', b'{"b": "x\xff"}', b'{"x": "\xff"}', b'{"b": "\\ud800"}', b'{"b": "}\\n{"}', b'{"b": "}\n{"}',
    b"null", b'{"a": null}', b'{"a": 1.0}', b'{"a": 1e2}', b'{"a": 3000000000}', b'{"a": -0}', b'{"c": [1e400]}',
    b'{"c": [-0.0, 1]}', b'{"c": [123456789012345678901234567890]}', b'{"c": [4.9e-324]}', b'{"d": []}',
    b'{"d": {"e": 1}}', b'{"d": null}',
    b'{"x": 1, "x": 2}', b'{"b": "\\u0000"}', b'{"\\u0061": 5}', b'{"x": ' + b"[" * 2000 + b"]" * 2000 + b"}",
    b"[{}]", b"\0\0\0\0\1{}", b'\xef\xbb\xbf{"a": 1}', b'{"a": 1}\0', b'{"a": 01}', b'{"a": 1,}', b'{"b": 5}',
    b'{"x": tru}', b'{"x": "\t"}', b'{"x": 1e999}', b'{"x": "\\ud800"}', b'{"x": "\\q"}', b'{"x": 01}', b'{"x": .5}',
]  # fmt: skip


@settings(max_examples=3000 if os.environ.get("PYSTORM_DEEP") else 200, deadline=None)
@given(st.lists(st.none() | st.sampled_from(ODD[:2]) | st.sampled_from(ODD), max_size=4))
def test_json_is_the_same_for_both_deliveries_whatever_it_is(data):
    decoded("json", data, "a int, b string, c array<double>, d struct<e: boolean>")


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_a_document_is_the_same_alone_and_among_others(odd):
    schema = "a int, b string, c array<double>, d struct<e: boolean>"
    alone, why = decoded("json", [odd], schema)
    among, why_not = decoded("json", [ODD[0], odd, None, ODD[1]], schema)
    assert among[1:2] == alone and list(why.values()) == list(why_not.values())


def test_plain_columns_are_read_at_once(monkeypatch):
    made = decoder("json", "a int, c array<struct<d: double>>")
    monkeypatch.setattr(made, "_value", None)  # what reads a document by itself
    found = made.array([b'{"a": 1, "x": 0}', None, b'{"c": [{"d": 2}, null]}'], {})
    assert found.to_pylist() == [{"a": 1, "c": None}, None, {"a": None, "c": [{"d": 2.0}, None]}]


# What happens to those that cannot be decoded.


def decoding(caplog, declared=None, **given):
    caplog.set_level(logging.WARNING)
    declared = {"key": "binary", "value": "struct<id: int>"} | (declared or {})
    return Decoding(options(**{"value_format": "json"} | given), declared, logging.getLogger("decoding"))


RECORDS = {"key": [b"a", b"b", b"c", None], "value": [b'{"id": 1}', b"x" * 300, b'{"id": 3}', b"y"]}


def where(index):
    return f"orders-3, offset {(10, 12, 13, 20)[index]}"


@pytest.mark.parametrize("delivery", ["decode_lists", "decode_arrays"])
def test_what_cannot_be_decoded_is_left_out_and_named_with_the_remedy(caplog, delivery):
    made = decoding(caplog, {"key": "string"})
    columns, kept, lost = getattr(made, delivery)({**RECORDS, "key": [b"a", b"b", b"\xff", None]}, where)
    assert plain(columns["key"], made.decoders["key"]) == ["a"] and kept == [0]
    assert plain(columns["value"], made.decoders["value"]) == [{"id": 1}]
    assert [each.record for each in lost] == [1, 2, 3]
    error = lost[0].error()
    said = error.message
    assert error.code == "PYSTORM_MALFORMED_RECORD"
    assert said.startswith("the value of the record at orders-3, offset 12 cannot be decoded: JSON is malformed")
    assert "Set value.format" in said and "topology.dead.letter=stream" in said and "decode.errors=null" in said
    assert said.endswith(f"Given: {b'x' * 100 + b'...'!r}")
    assert lost[1].reason.startswith("the key of the record at orders-3, offset 13 cannot")
    assert not caplog.messages


@pytest.mark.parametrize("delivery", ["decode_lists", "decode_arrays"])
def test_null_keeps_the_record_and_warns_once(caplog, delivery):
    made = decoding(caplog, decode_errors="null")
    for _ in range(2):
        columns, kept, lost = getattr(made, delivery)(RECORDS, where)
        assert plain(columns["key"], made.decoders["key"]) == RECORDS["key"] and kept is None and not lost
        assert plain(columns["value"], made.decoders["value"]) == [{"id": 1}, None, {"id": 3}, None]
    assert made.nulled == 4
    assert len(caplog.messages) == 1 and "orders-3, offset 12 cannot be decoded" in caplog.messages[0]


@pytest.mark.parametrize("delivery", ["decode_lists", "decode_arrays"])
def test_null_cannot_be_decoded_if_the_field_is_declared_not_null(caplog, delivery):
    made = decoding(caplog, {"key": "binary not null", "value": "struct<id: int> not null"})
    data = {"key": [b"k"] * 5 + [None], "value": [b'{"id": 1}', None, b"null", b"no json", b'{"id": 2}', b'{"id": 3}']}
    columns, kept, lost = getattr(made, delivery)(data, str)
    assert kept == [0, 4] and plain(columns["value"], made.decoders["value"]) == [{"id": 1}, {"id": 2}]
    assert [("it is null" in each.reason) for each in lost] == [True, True, False, True]
    assert lost[3].reason.startswith("the key of the record at 5 cannot")


def test_leaving_all_out_leaves_columns_of_the_declared_types(caplog):
    columns, kept, _ = decoding(caplog).decode_arrays({"key": [b"k"], "value": [b"x"]}, where)
    assert kept == [] and [len(column) for column in columns.values()] == [0, 0]
    assert columns["key"].type == pa.binary() and columns["value"].type == pa.struct([("id", pa.int32())])


def test_what_is_no_field_is_not_decoded():
    made = Decoding(options(key_format="json"), {"value": None}, logging.getLogger("decoding"))
    assert made.decode_lists({"value": [b"x"]}, where) == ({"value": [b"x"]}, None, ())


# Options and types.


@pytest.mark.parametrize(
    ("config", "value"),
    [
        ({}, "binary"),
        ({"value.format": "string"}, "string"),
        ({"value.format": "json"}, None),
        ({"value.format": "json", "value.schema": "id bigint, item string"}, "struct<id: bigint, item: string>"),
        ({"value.format": "avro", "value.schema": "map<string, int>"}, "map<string,int>"),
        ({"value.format": "json", "value.schema": "date date"}, "struct<date: date>"),
        (
            {"value.format": "json", "value.schema": "a decimal(4,2) not null, `b c` array<timestamp>"},
            "struct<a: decimal(4,2) not null, `b c`: array<timestamp>>",
        ),
        ({"value.format": "avro", "value.avro.reader.schema": '{"type": "array", "items": "long"}'}, "array<bigint>"),
    ],
)
def test_the_field_has_the_type_that_the_options_say(config, value):
    assert column_type(config, "value") == value
    assert column_type(config, "key") == "binary"


@pytest.mark.parametrize(
    ("declared", "given", "type"),
    [
        (None, {}, pa.binary()),
        ("string", {}, pa.string()),
        ("varchar(5)", {}, pa.string()),
        ("string not null", {}, pa.string()),
        ("struct<id int> not null", {"value_format": "json"}, pa.struct([("id", pa.int32())])),
        ("string", {"value_format": "json"}, pa.string()),
        ("array<int>", {"value_format": "json"}, pa.list_(pa.int32())),
        ("struct<id int>", {"value_format": "json", "value_schema": "id int"}, pa.struct([("id", pa.int32())])),
    ],
)
def test_the_declared_type_of_the_field_says_what_to_decode(declared, given, type):
    assert decoder_of(options(**given), "value", declared).type == type


@pytest.mark.parametrize(
    ("given", "declared", "says"),
    [
        (
            {"value_format": "xml"},
            None,
            "option 'value.format': takes '' or 'bytes' or 'string' or 'json' or 'avro'",
        ),
        ({"value_schema": "id int"}, None, "option 'value.schema' is for value.format json, avro and protobuf; bytes"),
        (
            {"value_format": "json", "value_schema": "id sting"},
            None,
            "the type of option 'value.schema' cannot be read",
        ),
        (
            {"value_format": "json", "value_schema": "id int,, a int"},
            None,
            "name of a field is needed where ',' stands",
        ),
        (
            {"value_format": "json", "value_avro_reader_schema": "{}"},
            None,
            "value.avro.reader.schema' is for value.form",
        ),
        ({"value_format": "avro"}, None, "value.format avro needs option 'schema.registry.url'"),
        *(
            ({"value_format": "avro", "schema_registry_url": url}, None, f"a URL such as http://registry:8081. {shown}")
            for url, shown in (
                ("registry:8081", "Given: 'registry:8081'"),
                ("http://:8081", "Given: 'http://:8081'"),
                ("http://a:1, ftp://b", "Given: 'ftp://b'"),
                ("http://word@:1", "Given: 'http://:1'"),
            )
        ),
        (
            {"schema_registry_max_retries": "many"},
            None,
            "option 'schema.registry.max.retries' is a number of at least 0",
        ),
        ({"value_format": "json"}, "map<array<int>,int>", "needs a type that JSON can be read as: no object has array"),
        (
            {},
            "struct<id int>",
            "field 'value' is declared as struct<id: int>, and value.format bytes gives binary: set",
        ),
        ({"value_format": "string"}, "binary", "value.format string gives string: declare it as string"),
        (
            {"value_format": "json", "value_schema": "a int"},
            "string",
            "gives struct<a: int>: declare it so",
        ),
        ({"value_format": "json"}, "binary", "field 'value' is declared as binary, and value.format is json: declare"),
        ({}, "sting", "the type of field 'value' cannot be read"),
    ],
)
def test_wrong_options_name_key_and_remedy(given, declared, says):
    with pytest.raises((OptionError, SchemaError)) as raised:
        decoder_of(options(**given), "value", declared)
    assert says in str(raised.value) and "Given: " in str(raised.value)


def test_secrets_of_the_registry_are_not_shown():
    given = {"value_format": "avro", "schema_registry_url": "http://r", "schema_registry_basic_auth_user_info": "me:pw"}
    assert "me:pw" not in repr(options(**given)) and shown("schema.registry.basic.auth.user.info", "me:pw") != "'me:pw'"


@given(st.data())
@settings(max_examples=15, deadline=None)
def test_ddl_says_the_type_that_it_was_read_as(data):
    ddl, _ = data.draw(ddl_and_values(avro=False))
    assert arrow_type(ddl_of(arrow_type(ddl, "x")), "x") == arrow_type(ddl, "x")
