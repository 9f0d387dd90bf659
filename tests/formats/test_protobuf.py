"""Protobuf: by schema id, written by Confluent's serializer and read from a registry over HTTP; by descriptor file."""

import datetime
import decimal
import itertools
import logging
import os
import re
import sys

import pytest
from confluent_kafka.schema_registry import SchemaReference
from confluent_kafka.schema_registry.serde import SchemaId
from google.protobuf import json_format
from hypothesis import given, settings
from hypothesis import strategies as st

from pystorm_source.errors import OptionError, SchemaError, WorldError
from pystorm_source.errors.packages import installing
from pystorm_source.formats.decoding import Decoding, column_type, decoder_of
from pystorm_source.formats.lines import Malformed
from pystorm_source.formats.options import DecodingOptions
from pystorm_source.formats.protobuf_schema import ProtobufSchema, type_of
from pystorm_source.options import parse
from pystorm_source.types.arrow import ddl_of
from tests.formats.decoded import agreed
from tests.formats.protobuf_files import SCALARS, descriptor_file, message_of, proto

UTC = datetime.UTC
STAMP, SPAN = "google/protobuf/timestamp.proto", "google/protobuf/duration.proto"
WRAPPERS = "google/protobuf/wrappers.proto"
ENUM = {"Size": {"SMALL": 0, "LARGE": 2, "HUGE": 2}}


numbers = itertools.count()


def options(registry, schema="", **given):
    return parse(DecodingOptions, {"value.format": "protobuf", "value.schema": schema, **registry.options, **given})


def decoder(registry, schema="", **given):
    return decoder_of(options(registry, schema, **given), "value")


def decoding(registry, declared, **given):
    return Decoding(options(registry, **given), declared, logging.getLogger("decoding"))


def one(kind, enums=None, imports=(), **more):
    """A file whose message R has one field f of this type, and a message Item."""
    messages = {"R": {"f": kind}, "Item": {"name": "string", "count": "optional int32"}}
    return proto(f"one{next(numbers)}.proto", messages, enums, imports, **more)


def read(registry, file, data, ddl):
    """What a message R of these bytes is, sent by Confluent's serializer."""
    return agreed(decoder(registry, ddl), registry.protobuf([message_of("shop.R", file).FromString(data)]))


def made(file, **fields):
    return message_of("shop.R", file)(**fields)


D = decimal.Decimal
NOON = datetime.datetime(2024, 2, 29, 12, 0, 0, 123456, tzinfo=UTC)
EVERY_TYPE = [
    # type in the file, type of the column, its JSON, its value
    ("bool", "boolean", True, True),
    ("int32", "int", -(2**31), -(2**31)),
    ("sint32", "int", -5, -5),
    ("sfixed32", "int", -5, -5),
    ("uint32", "bigint", 2**32 - 1, 2**32 - 1),
    ("fixed32", "bigint", 2**32 - 1, 2**32 - 1),
    ("int64", "bigint", -(2**63), -(2**63)),
    ("sint64", "bigint", -5, -5),
    ("sfixed64", "bigint", -5, -5),
    ("uint64", "decimal(20,0)", 2**64 - 1, D(2**64 - 1)),
    ("fixed64", "decimal(20,0)", 2**64 - 1, D(2**64 - 1)),
    ("float", "float", 0.1, 0.10000000149011612),
    ("double", "double", 0.1, 0.1),
    ("string", "string", "käse", "käse"),
    ("bytes", "binary", "AP8=", b"\0\xff"),
    ("Size", "string", "LARGE", "LARGE"),
    ("Item", "struct<name: string, count: int>", {"name": "tea"}, {"name": "tea", "count": None}),
    (".google.protobuf.Timestamp", "timestamp", "2024-02-29T12:00:00.123456789Z", NOON),
    (".google.protobuf.Duration", "interval day to second", "-1.000001999s", datetime.timedelta(0, -1, -1)),
    (".google.protobuf.Int64Value", "struct<value: bigint>", "7", {"value": 7}),
    ("repeated int32", "array<int>", [1, 0], [1, 0]),
    ("repeated uint64", "array<decimal(20,0)>", [1], [D(1)]),
    ("repeated Size", "array<string>", ["SMALL"], ["SMALL"]),
    ("repeated Item", "array<struct<name: string, count: int>>", [{}], [{"name": "", "count": None}]),
    ("map<string, int32>", "map<string,int>", {"a": 1}, {"a": 1}),
    ("map<bool, Size>", "map<boolean,string>", {"true": "LARGE"}, {True: "LARGE"}),
    ("map<uint64, bytes>", "map<decimal(20,0),binary>", {"1": "AA=="}, {D(1): b"\0"}),
    (
        "map<int32, Item>",
        "map<int,struct<name: string, count: int>>",
        {"5": {"count": 0}},
        {5: {"name": "", "count": 0}},
    ),
]
IMPORTS = (STAMP, SPAN, WRAPPERS)


@pytest.mark.parametrize(("kind", "ddl", "written", "value"), EVERY_TYPE, ids=[each[0] for each in EVERY_TYPE])
def test_every_type(shared, kind, ddl, written, value):
    file = one(kind, ENUM, IMPORTS)
    message = json_format.ParseDict({"f": written}, made(file))
    found, bad = agreed(decoder(shared, f"f {ddl}"), [*shared.protobuf([message]), None])
    assert found == [{"f": value}, None] and not bad
    assert repr(found[0]["f"]) == repr(value)
    assert ddl_of(type_of(message.DESCRIPTOR)) == f"struct<f: {ddl}>"


@pytest.mark.parametrize(
    ("kind", "ddl", "value"),
    [
        ("int32", "bigint", 0),
        ("float", "double", 0.0),
        ("uint64", "decimal(22,2)", D("0.00")),
        ("map<int32, uint64>", "map<bigint,decimal(38,0)>", {}),
    ],
)
def test_a_wider_type_may_be_declared(shared, kind, ddl, value):
    found, bad = read(shared, one(kind), b"", f"f {ddl}")
    assert not bad and repr(found) == repr([{"f": value}])


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("int64", 0),
        ("bool", False),
        ("string", ""),
        ("bytes", b""),
        ("uint64", D(0)),
        ("Size", "SMALL"),
        ("repeated int32", []),
        ("map<string, Item>", {}),
        ("optional int64", None),
        ("optional Size", None),
        ("oneof string", None),
        ("Item", None),
        (".google.protobuf.Timestamp", None),
        (".google.protobuf.StringValue", None),
    ],
)
def test_what_is_unset_is_null_if_the_message_can_say_so_or_its_default(shared, kind, value):
    file = one(kind, ENUM, IMPORTS)
    ddl = ddl_of(type_of(made(file).DESCRIPTOR).field("f").type)
    found, bad = read(shared, file, b"", f"f {ddl}")
    assert not bad and repr(found) == repr([{"f": value}])


def test_defaults_of_proto2_are_taken_and_required_fields_demanded(shared):
    fields = {"a": "int32 = 7", "b": "int32", "c": "string = x", "d": "required string", "e": "Size = LARGE"}
    file = proto("two.proto", {"R": fields}, ENUM, syntax="proto2")
    cls = message_of("shop.R", file)
    data = shared.protobuf([cls(d="y"), cls(a=0, d="")])
    data.append(data[0][:6])
    found, bad = agreed(decoder(shared, "a int, b int, c string, d string, e string"), data)
    assert found == [
        {"a": 7, "b": None, "c": "x", "d": "y", "e": "LARGE"},
        {"a": 0, "b": None, "c": "x", "d": "", "e": "LARGE"},
        None,
    ]
    assert bad == {2: "field 'd': it is required, and missing"}


def test_of_a_oneof_one_field_is_set(shared):
    file = proto("oneof.proto", {"R": {"id": "int32", "name": "oneof string", "number": "oneof int64"}})
    cls = message_of("shop.R", file)
    data = shared.protobuf([cls(name=""), cls(number=5)])
    found, bad = agreed(decoder(shared, "name string, number bigint"), data)
    assert found == [{"name": "", "number": None}, {"name": None, "number": 5}] and not bad


def test_numbers_that_an_enum_does_not_have_are_named_as_java_does(shared):
    assert read(shared, one("Size", ENUM), b"\x08\x63", "f string") == ([{"f": "UNKNOWN_ENUM_VALUE_Size_99"}], {})


@pytest.mark.parametrize("name", ["HasField", "Clear", "DESCRIPTOR", "from", "__class__", "FromString"])
def test_a_field_may_be_called_anything(tmp_path, name):
    config = of_file(tmp_path, proto("odd.proto", {"R": {name: "optional string", "b": "optional int32"}}))
    reader = decoder_of(parse(DecodingOptions, config), "value")
    assert agreed(reader, [b"\x0a\x01x", b""]) == ([{name: "x", "b": None}, {name: None, "b": None}], {})


@pytest.mark.parametrize(
    ("kind", "ddl", "says"),
    [
        ("int64", "int", "field 'f' is bigint in the schema that it was written with, which is declared int"),
        ("uint32", "int", "field 'f' is bigint in"),
        ("uint64", "bigint", "field 'f' is decimal(20,0) in"),
        ("string", "binary", "field 'f' is string in"),
        ("double", "float", "field 'f' is double in"),
        ("Size", "int", "field 'f' is string in"),
        (".google.protobuf.Timestamp", "timestamp_ntz", "field 'f' is timestamp in"),
        ("repeated int64", "array<int>", "field 'f[]' is bigint in"),
        ("repeated int64", "bigint", "field 'f' is an array in"),
        ("map<string, int64>", "map<string,int>", "field 'f{}' is bigint in"),
        ("map<string, int64>", "struct<a: bigint>", "field 'f' is a map in"),
        ("Item", "string", "field 'f' is the message shop.Item in"),
        ("Item", "struct<name: int>", "field 'f.name' is string in"),
        ("Item", "struct<no: int>", "field 'f' has none of the declared fields"),
        ("Item", "struct<name: string, no: int not null>", "field 'f.no' is not in the schema"),
        ("Item", "struct<name: string, count: int not null>", "field 'f': field 'count': it may not be null"),
    ],
)
def test_a_schema_that_does_not_fit_names_the_field(shared, kind, ddl, says):
    message = made(one(kind, ENUM, IMPORTS))
    if kind == "Item":
        message.f.name = "x"
    found, bad = agreed(decoder(shared, f"f {ddl}"), shared.protobuf([message]))
    assert found == [None] and says in bad[0]


@pytest.mark.parametrize(
    ("kind", "data", "says"),
    [
        (".google.protobuf.Timestamp", {"seconds": 2**60}, "seconds since 1970 are not between the years 1 and 9999"),
        (".google.protobuf.Duration", {"seconds": 2**62}, "seconds are more than a day-time interval holds"),
        (".google.protobuf.Duration", {"seconds": -(10**13)}, "seconds are more than a day-time interval holds"),
    ],
)
def test_times_that_no_column_holds_are_named(shared, kind, data, says):
    message = made(one(kind, imports=IMPORTS), f=data)
    ddl = ddl_of(type_of(message.DESCRIPTOR).field("f").type)
    found, bad = agreed(decoder(shared, f"f {ddl}"), shared.protobuf([message]))
    assert found == [None] and bad[0].startswith("field 'f': ") and says in bad[0]


def test_text_of_proto2_that_is_no_utf8_is_named(shared):
    file = one("string", syntax="proto2")
    assert read(shared, file, b"\x0a\x01\xff", "f string") == ([None], {0: "field 'f': it is not UTF-8"})


# The type of a message.


def test_a_message_within_itself_has_no_column_but_its_other_fields_have(registry):
    file = proto("tree.proto", {"R": {"id": "int32", "left": "R", "more": "repeated Node"}, "Node": {"tree": "R"}})
    with pytest.raises(Malformed, match=r"'shop\.R' contains itself, .*: declare a type without that field"):
        type_of(made(file).DESCRIPTOR)
    data = registry.protobuf([made(file, id=1, left={"id": 2, "left": {"id": 3}})])
    bad = {}
    assert decoder(registry).values(data, bad) == [None] and "contains itself" in bad[0]
    found = agreed(decoder(registry, "id int, left struct<id: int, left: struct<id: int>>"), data)
    assert found == ([{"id": 1, "left": {"id": 2, "left": {"id": 3}}}], {})


def test_fields_without_fields_have_no_column_as_in_spark():
    files = {"R": {"a": "Empty", "b": "repeated Empty", "c": "map<string, Empty>", "d": "int32"}, "Empty": {}}
    assert ddl_of(type_of(made(proto("e.proto", files)).DESCRIPTOR)) == "struct<d: int>"
    with pytest.raises(Malformed, match="has no fields"):
        type_of(made(proto("n.proto", {"R": {}})).DESCRIPTOR)


def test_without_a_declared_type_tuples_hold_what_was_written(registry):
    reader, bad = decoder(registry), {}
    data = registry.protobuf([made(one("repeated Item"), f=[{"name": "a"}])])
    assert reader.values([*data, None], bad) == [{"f": [{"name": "a", "count": None}]}, None]
    assert reader.type is None and not bad


def test_keys_are_decoded_by_their_own_options(registry):
    reader = decoding(
        registry, {"key": "struct<f: int>", "value": "string"}, **{"key.format": "protobuf", "value.format": ""}
    )
    data = {"key": registry.protobuf([made(one("int32"), f=5)]), "value": [b"v"]}
    assert reader.decode_lists(data, str) == ({"key": [{"f": 5}], "value": ["v"]}, None, ())
    assert reader.decode_arrays(data, str).columns["key"].to_pylist() == [{"f": 5}]


def test_old_and_new_writers_share_a_topic(registry):
    old = proto("old.proto", {"R": {"id": "int32"}})
    new = proto("new.proto", {"R": {"id": "int64", "extra": "int32", "item": "string"}})
    data = registry.protobuf([made(old, id=1)], "a") + registry.protobuf([made(new, id=1 << 40, item="tea")], "b")
    found, bad = agreed(decoder(registry, "id bigint, item string"), data * 2)
    assert found == [{"id": 1, "item": None}, {"id": 1 << 40, "item": "tea"}] * 2 and not bad


# The prefix: which message of which schema.

NESTED = proto(
    "nested.proto",
    {
        "A": {"a": "int32"}, "R": {"r": "int32", "counts": "map<string, int32>"}, "R.B": {"b": "int32"},
        "R.C": {"c": "int32"}, "R.C.D": {"d": "int32", "f": "A"},
    },
)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "indexes"), [("A", [0]), ("R", [1]), ("R.B", [1, 0]), ("R.C", [1, 1]), ("R.C.D", [1, 1, 0])]
)
def test_any_message_of_a_file_is_found(registry, name, indexes):
    message = message_of(f"shop.{name}", NESTED)()
    field = name[-1].lower()
    setattr(message, field, 5)
    data = registry.protobuf([message])
    id = int.from_bytes(data[0][1:5], "big")
    assert data[0].startswith(SchemaId("PROTOBUF", id, None, indexes).id_to_bytes()) or indexes == [0]
    explicit = SchemaId("PROTOBUF", id, None, indexes).id_to_bytes() + message.SerializeToString()
    assert agreed(decoder(registry, f"{field} int"), [*data, explicit] * 2) == ([{field: 5}] * 4, {})


def test_messages_of_one_file_share_a_topic(registry):
    a, d = message_of("shop.A", NESTED)(a=1), message_of("shop.R.C.D", NESTED)(d=2, f={"a": 3})
    data = registry.protobuf([a]) + registry.protobuf([d])
    registry.asked.clear()
    assert agreed(decoder(registry, "a int, d int, f struct<a: int>"), data * 3) == (
        [{"a": 1, "d": None, "f": None}, {"a": None, "d": 2, "f": {"a": 3}}] * 3, {},
    )  # fmt: skip
    assert len(registry.asked) <= 1


@pytest.mark.parametrize(
    ("prefix", "says"),
    [
        (b"\x02\x0a", "the schema of its id has no message [5]"),
        (b"\x02\x01", "the schema of its id has no message [-1]"),
        (b"\x04\x02\x08", "the schema of its id has no message [1, 4]"),
        (b"", "there are no numbers that name a message"),
        (b"\x03", "there are no numbers that name a message"),
        (b"\x04\x02", "there are no numbers that name a message"),
        (b"\x80" * 1000, "there are no numbers that name a message"),
        (b"\xfe\xff\xff\xff\x0f" + b"\0" * 100, "there are no numbers that name a message"),
    ],
)
def test_messages_that_the_file_does_not_have_are_named(shared, prefix, says):
    (good,) = shared.protobuf([message_of("shop.A", NESTED)(a=1)])
    found, bad = agreed(decoder(shared, "a int"), [good, good[:5] + prefix, good])
    assert found == [{"a": 1}, None, {"a": 1}] and says in bad[1]


def test_other_bytes_are_named_for_what_they_are(registry):
    (good,) = registry.protobuf([made(proto("o.proto", {"R": {"id": "int32", "item": "string"}}), id=1, item="tea")])
    fields = [{"name": "id", "type": "long"}]
    (avro,) = registry.avro([{"id": 1}], {"type": "record", "name": "A", "fields": fields}, "a")
    schema = {"title": "T", "type": "object", "properties": {"id": {"type": "integer"}}}
    (of_json,) = registry.json([{"id": 1}], schema, "j")
    data = [good, b"", b"{}", b"\0\0\0", b"\0\0\0\x27\x0f\0", avro, of_json, good[:-1], good[:6] + b"\x12\x01\xff"]
    found, bad = agreed(decoder(registry, "id int, item string"), data)
    assert found == [{"id": 1, "item": "tea"}] + [None] * 8
    for index, says in {
        1: "does not begin with a zero byte",
        2: "does not begin with a zero byte",
        3: "does not begin with a zero byte",
        4: f"the schema registry {registry.url!r} has no schema 9999",
        5: "is an Avro schema: set the format to avro",
        6: "is a JSON schema: set the format to json",
        7: "Error parsing message",
        8: "Error parsing message",
    }.items():
        assert says in bad[index]


def test_failing_names_field_and_record(registry):
    data = registry.protobuf([made(one("int64"), f=1)])
    _, kept, (lost,) = decoding(registry, {"value": "struct<f: int>"}).decode_lists({"value": data}, "record {}".format)
    assert kept == [] and "the value of the record at record 0 cannot be decoded: field 'f' is bigint" in lost.reason


# The registry.


def test_schemas_may_import_others_and_bundled_ones(registry):
    money = proto("shop/money.proto", {"Money": {"cents": "int64"}})
    item = proto("shop/item.proto", {"Item": {"name": "string", "price": "Money"}}, imports=["shop/money.proto"])
    item.message_type[0].field[1].type_name = ".shop.Money"
    fields = {"f": ".shop.Item", "paid": ".shop.Money", "at": ".google.protobuf.Timestamp", "day": ".google.type.Date"}
    imports = ["shop/item.proto", "shop/money.proto", STAMP, "google/type/date.proto"]
    order = proto("shop/order.proto", {"R": fields}, imports=imports)
    message = message_of("shop.R", money, item, order)(
        f={"name": "tea", "price": {"cents": 5}}, paid={"cents": 6}, at={"seconds": 1}, day={"year": 2024}
    )
    data = registry.protobuf([message])
    assert ddl_of(type_of(message.DESCRIPTOR)) == (
        "struct<f: struct<name: string, price: struct<cents: bigint>>, paid: struct<cents: bigint>, at: timestamp, "
        "day: struct<year: int, month: int, day: int>>"
    )
    registry.asked.clear()
    schema = "f struct<name: string, price: struct<cents: bigint>>, paid struct<cents: bigint>, day struct<year: int>"
    assert agreed(decoder(registry, schema), data) == (
        [{"f": {"name": "tea", "price": {"cents": 5}}, "paid": {"cents": 6}, "day": {"year": 2024}}], {},
    )  # fmt: skip
    assert len(registry.asked) == 3 and all("format=serialized" in each for each in registry.asked)


def serialized(file):
    from confluent_kafka.schema_registry.protobuf import _proto_to_str

    return _proto_to_str(file)


@pytest.mark.parametrize(
    ("text", "references", "says"),
    [
        ('syntax = "proto3";', {}, "does not give the schema serialized"),
        ("AAAA", {}, "does not give the schema serialized"),
        (serialized(proto("", {"R": {}}, imports=["gone.proto"])), {}, "imports 'gone.proto', which is missing"),
        (serialized(proto("", {"R": {}}, imports=["google/nope.proto"])), {}, "imports 'google/nope.proto', which is"),
        (serialized(proto("", {"R": {"f": ".no.Where"}})), {}, "the schema cannot be read"),
        (
            serialized(proto("", {"R": {}}, imports=["a"])),
            {"a": serialized(proto("", {}, imports=["b"])), "b": serialized(proto("", {}, imports=["a"]))},
            "the schema cannot be read: 'a' imports itself",
        ),
        (
            serialized(proto("", {"R": {}}, imports=["a"])),
            {"a": serialized(proto("", {"R": {}}))},
            "duplicate symbol",
        ),
    ],
)
def test_a_schema_that_cannot_be_read_is_refused(text, references, says):
    with pytest.raises(Malformed) as raised:
        ProtobufSchema.registered(text, references)
    assert says in str(raised.value)


def test_a_registry_that_gives_text_is_named(registry):
    id = registry.register("syntax", f"text{next(numbers)}", "PROTOBUF", [SchemaReference("x.proto", "gone", 1)])
    _, bad = agreed(decoder(registry, "id int"), [b"\0" + id.to_bytes(4, "big") + b"\0"])
    assert "has no version 1 of subject 'gone'" in bad[0]
    id = registry.register("syntax", f"text{next(numbers)}", "PROTOBUF")
    _, bad = agreed(decoder(registry, "id int"), [b"\0" + id.to_bytes(4, "big") + b"\0"])
    assert "does not give the schema serialized, as Confluent's does: take the format bytes" in bad[0]


def test_a_schema_is_asked_for_once_in_a_process(registry):
    data = registry.protobuf([made(one("int32"), f=1)] * 2)
    registry.asked.clear()
    for _ in range(3):
        agreed(decoder(registry, "f int"), data * 2)
    assert len(registry.asked) == 1 and registry.asked[0].startswith("/schemas/ids/")


def test_an_unknown_id_is_asked_for_again_with_the_next_records(registry):
    reader, file = decoder(registry, "f int"), one("int32")
    id = registry.next_id
    data = b"\0" + id.to_bytes(4, "big") + b"\0\x08\x05"
    for _ in range(2):
        bad = {}
        assert reader.values([data, data], bad) == [None, None]
        assert list(bad) == [0, 1]
    assert [each.partition("?")[0] for each in registry.asked] == [f"/schemas/ids/{id}"] * 2
    assert registry.protobuf([made(file, f=5)])[0] == data
    assert agreed(reader, [data]) == ([{"f": 5}], {})


@pytest.mark.parametrize("policy", ["dead-letter", "fail", "null", "drop"])
def test_a_registry_that_is_down_fails_the_task_whatever_happens_to_bad_records(registry, policy):
    data = registry.protobuf([made(one("int32"), f=1)])
    registry.failures += [500] * 2
    reader = decoding(registry, {"value": "struct<f: int>"}, **{"decode.errors": policy})
    with pytest.raises(WorldError, match=r"does not give schema .*schema\.registry\.timeout.*Given: 'http"):
        reader.decode_lists({"value": data}, str)
    assert reader.decode_lists({"value": data}, str) == ({"value": [{"f": 1}]}, None, ())


@pytest.mark.parametrize("package", ["google.protobuf.message_factory", "confluent_kafka.schema_registry"])
def test_a_package_that_is_missing_is_named_with_the_extra_that_has_it(registry, monkeypatch, package):
    data = registry.protobuf([made(one("int32"), f=1)])
    for module in ("protobuf", "protobuf_reader", "protobuf_schema", "registry"):
        monkeypatch.delitem(sys.modules, f"pystorm_source.formats.{module}", raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(OptionError, match=rf"{re.escape(installing('protobuf'))}.*{re.escape(package)}"):
        decoder(registry, "f int").values(data, {})


# Descriptor files.


def of_file(tmp_path, *files, message="shop.R", **given):
    path = descriptor_file(tmp_path / "shop.desc", *files)
    return {
        "value.format": "protobuf", "value.protobuf.descriptor.file": path, "value.protobuf.message": message, **given
    }  # fmt: skip


def test_plain_messages_are_read_by_a_descriptor_file_which_gives_the_type(tmp_path):
    item = proto("item.proto", {"Item": {"name": "string"}}, package="other")
    file = proto("r.proto", {"R": {"id": "uint32", "f": ".other.Item", "at": ".google.protobuf.Timestamp"}},
                 imports=["item.proto", STAMP])  # fmt: skip
    config = of_file(tmp_path, file, item)
    data = [message_of("shop.R", item, file)(id=1, f={"name": "tea"}).SerializeToString(), b"", None, b"\xff"]
    assert column_type(config, "value") == "struct<id: bigint, f: struct<name: string>, at: timestamp>"
    found, bad = agreed(decoder_of(parse(DecodingOptions, config), "value"), data)
    tea, empty = {"id": 1, "f": {"name": "tea"}, "at": None}, {"id": 0, "f": None, "at": None}
    assert found == [tea, empty, None, None] and list(bad) == [3]
    declared = decoder_of(parse(DecodingOptions, config), "value", "struct<id: bigint, more: int>")
    assert agreed(declared, data[:1]) == ([{"id": 1, "more": None}], {})


@pytest.mark.parametrize(
    ("given", "declared", "says"),
    [
        ({"value.protobuf.message": ""}, None, "need each other: set both"),
        ({"value.protobuf.descriptor.file": ""}, None, "need each other: set both"),
        ({"value.protobuf.message": "R"}, None, "there is no message 'R', but shop.Item, shop.Loop, shop.R"),
        ({"value.protobuf.descriptor.file": "/nowhere.desc"}, None, "the file cannot be read: "),
        ({"value.protobuf.descriptor.file": __file__}, None, "the file is no FileDescriptorSet"),
        ({"value.format": "json"}, None, "'value.protobuf.descriptor.file' is for value.format protobuf"),
        ({"value.protobuf.message": "shop.Loop"}, None, "contains itself"),
        ({"value.schema": "f int"}, None, "field 'f' is bigint"),
        ({}, "struct<f: int>", "field 'f' is bigint"),
        ({}, "bigint", "value.format protobuf gives a struct: declare field 'value' as one"),
    ],
)
def test_a_file_or_message_that_does_not_fit_is_refused_before_anything_is_read(tmp_path, given, declared, says):
    file = proto("r.proto", {"R": {"f": "int64"}, "Item": {"name": "string"}, "Loop": {"f": "Loop"}})
    with pytest.raises((OptionError, SchemaError)) as raised:
        decoder_of(parse(DecodingOptions, {**of_file(tmp_path, file), **given}), "value", declared)
    assert says in str(raised.value) and "value." in str(raised.value) and "Given: " in str(raised.value)


def test_without_registry_and_file_both_are_named():
    with pytest.raises(OptionError, match=r"needs option 'schema\.registry\.url'.*'value\.protobuf\.descriptor\.file'"):
        parse(DecodingOptions, {"value.format": "protobuf"})


def test_an_imported_file_that_is_missing_names_protocs_argument(tmp_path):
    file = proto("r.proto", {"R": {"f": "int64"}}, imports=["item.proto"])
    with pytest.raises(OptionError, match=r"imports 'item\.proto', which is missing.*--include_imports"):
        decoder_of(parse(DecodingOptions, of_file(tmp_path, file)), "value")


# Any schema, any message.

KINDS = [*SCALARS, "Size", "Item", ".google.protobuf.Timestamp", ".google.protobuf.Duration", ".google.protobuf.Any"]
KEYS = ["string", "bool", "int32", "int64", "uint32", "uint64", "sint64", "fixed32"]
ANY_IMPORTS = (STAMP, SPAN, "google/protobuf/any.proto")


@st.composite
def any_file(draw):
    kinds = st.sampled_from(KINDS)
    fields = st.one_of(
        kinds,
        kinds.map("repeated {}".format),
        kinds.map("optional {}".format),
        kinds.map("oneof {}".format),
        st.tuples(st.sampled_from(KEYS), kinds).map("map<{0[0]}, {0[1]}>".format),
    )
    messages = {
        "R": {f"f{n}": kind for n, kind in enumerate(draw(st.lists(fields, min_size=1, max_size=6)))},
        "Item": {"name": "string", "sizes": "repeated Size", "n": "optional sint64"},
    }
    return proto("any.proto", messages, ENUM, ANY_IMPORTS)


def any_fields(descriptor):
    """Random fields of a message, by name; those of messages within it as dicts."""
    scalars = {
        "bool": st.booleans(), "string": st.text(max_size=3), "bytes": st.binary(max_size=3),
        "double": st.floats(allow_nan=False), "float": st.floats(width=32, allow_nan=False),
    }  # fmt: skip
    of = {number: scalars.get(name) for name, number in SCALARS.items()}

    def one_value(field):
        if field.message_type is not None:
            return fields_of(field.message_type)
        if field.enum_type is not None:
            return st.sampled_from([0, 2, 77])
        if of[field.type] is not None:
            return of[field.type]
        bits, signed = (32 if field.cpp_type in (1, 3) else 64), field.cpp_type in (1, 2)
        return st.integers(-(2 ** (bits - 1)) if signed else 0, 2 ** (bits - 1 if signed else bits) - 1)

    def value(field):
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            key, item = (field.message_type.fields_by_name[name] for name in ("key", "value"))
            return st.dictionaries(one_value(key), one_value(item), max_size=2)
        return st.lists(one_value(field), max_size=2) if field.is_repeated else one_value(field)

    def fields_of(message):
        if message.full_name == "google.protobuf.Timestamp":
            return st.fixed_dictionaries({"seconds": st.integers(-62135596800, 253402300799), "nanos": MICROS})
        if message.full_name == "google.protobuf.Duration":
            return st.integers(-(10**17), 10**17).map(
                lambda n: {"seconds": int(n / 10**6), "nanos": (abs(n) % 10**6) * 1000 * (1 if n >= 0 else -1)}
            )
        return st.fixed_dictionaries({}, optional={field.name: value(field) for field in message.fields})

    return fields_of(descriptor)


MICROS = st.integers(0, 999_999).map(lambda n: n * 1000)


def set_fields(message, fields):
    for name, value in fields.items():
        field = message.DESCRIPTOR.fields_by_name[name]
        if field.message_type is None:
            if field.is_repeated:
                getattr(message, name).extend(value)
            else:
                setattr(message, name, value)
        elif field.message_type.GetOptions().map_entry:
            for key, item in value.items():
                if isinstance(item, dict):
                    set_fields(getattr(message, name)[key], item)
                else:
                    getattr(message, name)[key] = item
        elif field.is_repeated:
            for each in value:
                set_fields(getattr(message, name).add(), each)
        else:
            getattr(message, name).SetInParent()
            set_fields(getattr(message, name), value)
    return message


def unread(value):
    """What would be set in a message, for a value that was read."""
    if isinstance(value, dict):
        return {int(k) if isinstance(k, D) else k: unread(each) for k, each in value.items() if each is not None}
    if isinstance(value, list):
        return [unread(each) for each in value]
    if isinstance(value, datetime.datetime):
        micros = (value - datetime.datetime(1970, 1, 1, tzinfo=UTC)) // datetime.timedelta(microseconds=1)
        return {"seconds": micros // 10**6, "nanos": micros % 10**6 * 1000}
    if isinstance(value, datetime.timedelta):
        micros = value // datetime.timedelta(microseconds=1)
        sign = 1 if micros >= 0 else -1
        return {"seconds": sign * (abs(micros) // 10**6), "nanos": sign * (abs(micros) % 10**6) * 1000}
    if isinstance(value, str) and value in (*ENUM["Size"], UNKNOWN):
        return {**ENUM["Size"], UNKNOWN: 77}[value]
    return int(value) if isinstance(value, D) else value


UNKNOWN = "UNKNOWN_ENUM_VALUE_Size_77"


@settings(max_examples=1000 if os.environ.get("PYSTORM_DEEP") else 40, deadline=None)
@given(st.data())
def test_messages_of_any_schema_come_back(shared, data):
    file = data.draw(any_file())
    cls = message_of("shop.R", file)
    written = [
        set_fields(cls(), each) for each in data.draw(st.lists(any_fields(cls.DESCRIPTOR), min_size=1, max_size=3))
    ]
    ddl = ddl_of(type_of(cls.DESCRIPTOR))
    reader = decoder_of(options(shared), "value", ddl)
    found, bad = agreed(reader, shared.protobuf(written, f"any{next(numbers)}"))
    assert not bad
    for each, message in zip(found, written, strict=True):
        again = set_fields(cls(), unread(each))
        assert again == message or json_format.MessageToDict(again) == json_format.MessageToDict(message)


@settings(max_examples=3000 if os.environ.get("PYSTORM_DEEP") else 150, deadline=None)
@given(st.lists(st.none() | st.binary(max_size=40), min_size=1, max_size=4), st.booleans())
def test_random_bytes_are_an_error_or_null(shared, data, with_id):
    kinds = {f"f{n}": kind for n, kind in enumerate([*KINDS, *(f"repeated {kind}" for kind in KINDS)])}
    file = proto(
        "every.proto",
        {"R": kinds, "Item": {"name": "string", "r": "optional int32"}},
        ENUM,
        ANY_IMPORTS,
        syntax="proto3",
    )
    message = made(file)
    (head,) = shared.protobuf([message], "every")
    written = [None if each is None else head + each if with_id else each for each in data]
    reader = decoder_of(options(shared), "value", ddl_of(type_of(message.DESCRIPTOR)))
    found, bad = agreed(reader, written)
    for index, (value, each) in enumerate(zip(found, written, strict=True)):
        assert (value is None) == (each is None or index in bad)
