"""Avro by schema id: written by Confluent's serializers, read through its client from a registry over HTTP."""

import datetime
import decimal
import itertools
import json
import logging
import os
import re
import sys
import uuid

import pytest
from confluent_kafka.schema_registry import SchemaReference
from fastavro import parse_schema
from hypothesis import given, settings
from hypothesis import strategies as st

from pystorm_source.errors import OptionError, WorldError
from pystorm_source.errors.packages import installing
from pystorm_source.formats.avro_schema import AvroSchema
from pystorm_source.formats.decoding import Decoding, decoder_of
from pystorm_source.formats.lines import Malformed
from pystorm_source.formats.options import DecodingOptions
from pystorm_source.options import parse
from pystorm_source.types.arrow import arrow_type, ddl_of
from testbed.certificates import self_signed
from tests.formats.decoded import agreed, ddl_and_values
from tests.formats.schema_registry import schema_registry

UTC = datetime.UTC


numbers = itertools.count()


def options(registry, schema="", **given):
    return parse(DecodingOptions, {"value.format": "avro", "value.schema": schema, **registry.options, **given})


def decoder(registry, schema="", **given):
    return decoder_of(options(registry, schema, **given), "value")


def decoding(registry, declared, **given):
    return Decoding(options(registry, **given), declared, logging.getLogger("decoding"))


def record(**fields):
    fields = [{"name": name, "type": kind} for name, kind in fields.items()]
    return {"type": "record", "name": f"R{next(numbers)}", "fields": fields}


def framed(id, data):
    return b"\0" + id.to_bytes(4, "big") + data


MONEY = {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}
CENTS = {"type": "fixed", "name": "Cents", "size": 4, "logicalType": "decimal", "precision": 6, "scale": 2}
MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
MICROS = {"type": "long", "logicalType": "timestamp-micros"}
LOCAL = {"type": "long", "logicalType": "local-timestamp-micros"}
NOON = datetime.datetime(2024, 2, 29, 12, 0, 0, 1000)

EVERY_TYPE = [
    ("boolean", "boolean", True, True),
    ("int", "int", -5, -5),
    ("int", "bigint", -5, -5),
    ("long", "bigint", 1 << 60, 1 << 60),
    ("float", "float", 0.5, 0.5),
    ("float", "double", 0.5, 0.5),
    ("double", "double", 0.1, 0.1),
    ("string", "string", "käse", "käse"),
    ("bytes", "binary", b"\0\xff", b"\0\xff"),
    ({"type": "fixed", "name": "F", "size": 2}, "binary", b"ab", b"ab"),
    ({"type": "enum", "name": "E", "symbols": ["HOT", "COLD"]}, "string", "COLD", "COLD"),
    ({"type": "string", "logicalType": "uuid"}, "string", uuid.UUID(int=7), str(uuid.UUID(int=7))),
    (MONEY, "decimal(6,2)", decimal.Decimal("-12.5"), decimal.Decimal("-12.50")),
    (MONEY, "decimal(20,4)", decimal.Decimal("-12.5"), decimal.Decimal("-12.5000")),
    (CENTS, "decimal(6,2)", decimal.Decimal("9999.99"), decimal.Decimal("9999.99")),
    ({"type": "int", "logicalType": "date"}, "date", NOON.date(), NOON.date()),
    ({"type": "int", "logicalType": "time-millis"}, "time", NOON.time(), NOON.time()),
    ({"type": "long", "logicalType": "time-micros"}, "time", NOON.time(), NOON.time()),
    (MILLIS, "timestamp", NOON.replace(tzinfo=UTC), NOON.replace(tzinfo=UTC)),
    (MICROS, "timestamp", NOON.replace(tzinfo=UTC), NOON.replace(tzinfo=UTC)),
    (LOCAL, "timestamp_ntz", NOON, NOON),
    (["null", "string"], "string", None, None),
    (["null", "int", "long"], "bigint", 1 << 40, 1 << 40),
    ({"type": "array", "items": ["null", MICROS]}, "array<timestamp>", [None], [None]),
    (
        {"type": "map", "values": MONEY},
        "map<string,decimal(6,2)>",
        {"a": decimal.Decimal(1)},
        {"a": decimal.Decimal("1.00")},
    ),
    (
        {**record(x="int", y="string"), "name": "In"},
        "struct<x: int, y: string>",
        {"x": 1, "y": "z"},
        {"x": 1, "y": "z"},
    ),
]


@pytest.mark.parametrize(
    ("kind", "ddl", "written", "read"), EVERY_TYPE, ids=[f"{k} as {d}" for k, d, _, _ in EVERY_TYPE]
)
def test_every_type(shared, kind, ddl, written, read):
    data = shared.avro([{"f": written}], record(f=kind))
    found, bad = agreed(decoder(shared, f"f {ddl}"), [*data, None])
    assert found == [{"f": read}, None] and not bad
    assert repr(found[0]["f"]) == repr(read)


def test_the_type_of_a_schema_is_the_narrowest_that_holds_it():
    narrowest = {ddl: kind for kind, ddl, _, _ in reversed(EVERY_TYPE) if (kind, ddl) not in WIDER}
    for ddl, kind in narrowest.items():
        assert ddl_of(AvroSchema(json.dumps(record(f=kind)), {}).type()) == f"struct<f: {ddl}>"


WIDER = [("int", "bigint"), ("float", "double"), (MONEY, "decimal(20,4)")]


@pytest.mark.parametrize(
    ("kind", "ddl", "says"),
    [
        ("long", "int", "field 'f' is bigint in the schema that it was written with, which is declared int"),
        ("string", "bigint", "field 'f' is string in"),
        ("string", "binary", "field 'f' is string in"),
        ("double", "float", "field 'f' is double in"),
        (MICROS, "timestamp_ntz", "field 'f' is timestamp in"),
        (MONEY, "decimal(6,1)", "field 'f' is decimal(6,2) in"),
        (MONEY, "decimal(5,2)", "field 'f' is decimal(6,2) in"),
        (
            ["null", "int"],
            "int not null",
            "field 'f' is null in the schema that it was written with, which is declared int not",
        ),
        (["null", "int", "string"], "int", "field 'f' is string in"),
        ({"type": "array", "items": "long"}, "array<int>", "field 'f[]' is bigint in"),
        ({"type": "map", "values": "long"}, "map<string,int>", "field 'f{}' is bigint in"),
        ({"type": "map", "values": "long"}, "struct<a: bigint>", "field 'f' is map in"),
        ({**record(x="long"), "name": "In"}, "struct<x: string>", "field 'f.x' is bigint in"),
        ({**record(x="long"), "name": "In"}, "struct<y: long>", "field 'f' has none of the declared fields"),
        ({**record(x="long"), "name": "In"}, "struct<x: long, y: long not null>", "field 'f.y' is not in the schema"),
        ({**CENTS, "precision": 40, "size": 20}, "decimal(38,2)", "field 'f' is a decimal of 40 digits"),
    ],
)
def test_a_schema_that_does_not_fit_names_the_field(kind, ddl, says):
    with pytest.raises(Malformed) as raised:
        AvroSchema(json.dumps(record(f=kind)), {}).check_fits(arrow_type(f"f {ddl}", "value.schema"))
    assert says in str(raised.value)


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ("{", "the schema cannot be read"),
        ('"sting"', "the schema cannot be read"),
        (json.dumps({**record(next=["null", "R"]), "name": "R"}), "the schema's 'R' contains itself"),
        ("{}", "the schema cannot be read"),
        ('{"type": ""}', "the schema cannot be read"),
        ('["null", ["int"]]', "a union within a union|cannot be read"),
        (json.dumps(record(f={**MONEY, "precision": 0})), "precision"),
        (json.dumps(record(f={**MONEY, "precision": None})), "precision"),
        (json.dumps(record(f={**MONEY, "scale": 7})), "scale"),
        (json.dumps({**record(), "fields": [{"name": 1, "type": "int"}]}), "name|called"),
        (json.dumps(record(f={"type": "array", "items": "null"})), "an array whose elements take no bytes"),
        (json.dumps(record(f={"type": "array", "items": {**record(), "name": "In"}})), "elements take no bytes"),
    ],
)
def test_a_schema_that_cannot_be_read_is_refused(schema, says):
    with pytest.raises(Malformed, match=says):
        AvroSchema(schema, {})


def test_schemas_that_refer_to_each_other_are_refused():
    circle = {"A": json.dumps(record(b="B") | {"name": "A"}), "B": json.dumps(record(a="A", c="C") | {"name": "B"})}
    with pytest.raises(Malformed, match="the schema"):
        AvroSchema(json.dumps(record(a="A")), circle)


ANY = record(
    a=["null", "long"], b="string", c={"type": "array", "items": "double"}, d={"type": "map", "values": "bytes"},
    e={"type": "enum", "name": "E", "symbols": ["X"]}, f=MICROS, g=MONEY, h={"type": "string", "logicalType": "uuid"},
    i={"type": "fixed", "name": "F", "size": 1}, j={"type": "int", "logicalType": "time-millis"},
)  # fmt: skip
SOME = ["record", "array", "map", "enum", "fixed", "bytes", "null", "decimal", "R", "", 0, 1, 39, None, 2.5, [], {}]
KEYS = ["type", "name", "fields", "items", "values", "symbols", "size", "logicalType", "precision", "scale", "aliases"]


@settings(max_examples=1000 if os.environ.get("PYSTORM_DEEP") else 80, deadline=None)
@given(st.data())
def test_any_schema_has_a_type_or_is_refused(data):
    anything = st.recursive(
        st.sampled_from(SOME),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
        max_leaves=8,
    )
    schema = data.draw(st.sampled_from([ANY, record(a=CENTS), record(a=MONEY)]))
    field = dict(data.draw(st.sampled_from(schema["fields"])))
    field[data.draw(st.sampled_from(sorted(field)))] = data.draw(anything)
    try:
        read = AvroSchema(json.dumps({**schema, "fields": [field]}), {})
        read.check_fits(read.type())
    except Malformed:
        pass


def test_without_a_declared_type_tuples_hold_what_was_written(registry):
    made = decoder(registry)
    bad = {}
    data = registry.avro([{"a": 1, "b": "x"}], record(a="long", b="string"))
    assert made.values([*data, None], bad) == [{"a": 1, "b": "x"}, None]
    assert made.type is None and not bad


def test_a_value_may_be_no_record(registry):
    data = registry.avro(["a", "b"], "string")
    assert agreed(decoder(registry, "string"), data) == (["a", "b"], {})


def test_keys_are_decoded_by_their_own_options(registry):
    given = {"key.format": "avro", "value.format": ""}
    made = decoding(registry, {"key": "string", "value": "string"}, **given)
    data = {"key": registry.avro(["k"], "string"), "value": [b"v"]}
    assert made.decode_lists(data, str) == ({"key": ["k"], "value": ["v"]}, None, ())
    assert made.decode_arrays(data, str).columns["key"].to_pylist() == ["k"]


def test_old_and_new_writers_share_a_topic(registry):
    old = registry.avro([{"id": 1}], record(id="int"))
    new = registry.avro([{"id": 1 << 40, "extra": 5, "item": "tea"}], record(id="long", extra="int", item="string"))
    found, bad = agreed(decoder(registry, "id bigint, item string"), old + new)
    assert found == [{"id": 1, "item": None}, {"id": 1 << 40, "item": "tea"}] and not bad


def test_a_reader_schema_says_defaults_and_aliases(registry):
    reader, old, new, odd = ({**record(**fields), "name": "Order"} for fields in (
        {"number": "long", "item": "string"}, {"id": "int"}, {"id": "int", "item": "string"}, {"item": "int"},
    ))  # fmt: skip
    reader["fields"][0]["aliases"] = ["id"]
    reader["fields"][1]["default"] = "coffee"
    given = {"value.avro.reader.schema": json.dumps(reader)}
    assert ddl_of(decoder(registry, **given).type) == "struct<number: bigint, item: string>"
    data = registry.avro([{"id": 1}], old) + registry.avro([{"id": 2, "item": "tea"}], new)
    data += registry.avro([{"item": 5}], odd)
    found, bad = agreed(decoder(registry, **given), data)
    assert found == [{"number": 1, "item": "coffee"}, {"number": 2, "item": "tea"}, None]
    assert "SchemaResolutionError" in bad[2]


@pytest.mark.parametrize(
    ("schema", "reader", "says"),
    [
        ("id int", record(id="long"), "field 'id' is bigint"),
        ("", {"type": "record"}, "the schema cannot be read"),
        ("", record(id=["int", "string"]), "field 'id' is a union of int, string, for which there is no type"),
    ],
)
def test_a_reader_schema_that_does_not_fit_is_refused_before_anything_is_read(shared, schema, reader, says):
    with pytest.raises(OptionError) as raised:
        decoder(shared, schema, **{"value.avro.reader.schema": json.dumps(reader)})
    assert says in str(raised.value) and "value.avro.reader.schema" in str(raised.value)


def test_schemas_may_refer_to_others(registry):
    money, item = SchemaReference("Money", "money", 1), SchemaReference("Item", "item", 1)
    registry.register({**record(cents="long"), "name": "Money"}, "money")
    registry.register({**record(name="string", price="Money"), "name": "Item"}, "item", references=[money])
    id = registry.register(record(item="Item", paid="Money"), "order", references=[item, money])
    schema = "item struct<name: string, price: struct<cents: bigint>>, paid struct<cents: bigint>"
    found, bad = agreed(decoder(registry, schema), [framed(id, b"\x06tea\x0a\x0c")])
    assert found == [{"item": {"name": "tea", "price": {"cents": 5}}, "paid": {"cents": 6}}] and not bad


# What is no Avro of a known schema.


def test_other_bytes_are_named_for_what_they_are(registry):
    (good,) = registry.avro([{"id": 1, "item": "tea"}], record(id="long", item="string"))
    proto = framed(registry.register("syntax", "p", "PROTOBUF"), b"\0")
    schema = {"title": "T", "type": "object", "properties": {"id": {"type": "integer"}}}
    (of_json,) = registry.json([{"id": 1}], schema, "j")
    data = [good, b"", b"{}", b"\0\0\0", framed(9999, b""), proto, of_json, good[:-1], good + b"x", good[:5]]
    found, bad = agreed(decoder(registry, "id bigint, item string"), data)
    assert found == [{"id": 1, "item": "tea"}] + [None] * 9
    for index, says in {
        1: "does not begin with a zero byte",
        2: "does not begin with a zero byte",
        3: "does not begin with a zero byte",
        4: f"the schema registry {registry.url!r} has no schema 9999",
        5: "is one of Protobuf: set the format to protobuf",
        6: "is a JSON schema: set the format to json",
        7: "it ends within a value",
        8: "1 bytes are left over after the value",
        9: "it ends within a value",
    }.items():
        assert says in bad[index]
    as_json = decoder_of(parse(DecodingOptions, {"value.format": "json", "value.schema": "id bigint"}), "value")
    assert agreed(as_json, [of_json]) == ([{"id": 1}], {})


def test_a_number_of_more_digits_than_declared_is_not_rounded(registry):
    id = registry.register(record(f=MONEY))
    found, bad = agreed(decoder(registry, "f decimal(6,2)"), [framed(id, b"\x08\x00\xff\xff\xff")])
    assert found == [None] and bad[0] == "field 'f': 167772.15 does not fit decimal(6,2)"


def test_an_integer_of_more_bits_than_its_type_is_not_taken(registry):
    id = registry.register(record(f="int"))
    found, bad = agreed(decoder(registry, "f int"), [framed(id, b"\xfe\xff\xff\xff\x3f")])
    assert found == [None] and "does not fit an integer of 32 bits" in bad[0]


def test_failing_names_field_and_record(registry):
    data = registry.avro([{"id": 1}], record(id="long"))
    _, kept, (lost,) = decoding(registry, {"value": "struct<id: int>"}).decode_lists(
        {"value": data}, "record {}".format
    )
    assert kept == [] and "the value of the record at record 0 cannot be decoded: field 'id' is bigint" in lost.reason


@settings(max_examples=3000 if os.environ.get("PYSTORM_DEEP") else 150, deadline=None)
@given(st.lists(st.none() | st.binary(max_size=40), min_size=1, max_size=4), st.booleans())
def test_random_bytes_are_an_error_or_null(shared, data, with_id):
    id = shared.register(ANY, "any")
    written = [None if each is None else framed(id, each) if with_id else each for each in data]
    found, bad = agreed(decoder(shared, ddl_of(AvroSchema(json.dumps(ANY), {}).type())), written)
    for index, (value, each) in enumerate(zip(found, written, strict=True)):
        assert (value is None) == (each is None or index in bad)


KINDS = {
    "boolean": "boolean", "int": "int", "bigint": "long", "float": "float", "double": "double", "string": "string",
    "binary": "bytes", "date": {"type": "int", "logicalType": "date"}, "timestamp": MICROS, "timestamp_ntz": LOCAL,
}  # fmt: skip


def avro_of(type, names):
    """The Avro schema of values that may be null."""
    ddl = ddl_of(type)
    if ddl.startswith("struct"):
        fields = [{"name": field.name, "type": avro_of(field.type, names)} for field in type]
        kind = {"type": "record", "name": f"R{next(names)}", "fields": fields}
    elif ddl.startswith("array"):
        kind = {"type": "array", "items": avro_of(type.value_type, names)}
    elif ddl.startswith("map"):
        kind = {"type": "map", "values": avro_of(type.item_type, names)}
    elif ddl.startswith("decimal"):
        kind = {"type": "bytes", "logicalType": "decimal", "precision": type.precision, "scale": type.scale}
    else:
        kind = KINDS[ddl]
    return ["null", kind]


@settings(max_examples=1000 if os.environ.get("PYSTORM_DEEP") else 25, deadline=None)
@given(st.data())
def test_records_of_any_schema_come_back(shared, data):
    ddl, values = data.draw(ddl_and_values(avro=True))
    schema = avro_of(arrow_type(ddl, "x"), iter(range(1000)))[1]
    parse_schema(schema)
    written = iter(shared.avro([value for value in values if value is not None], schema, "any"))
    found, bad = agreed(decoder(shared, ddl), [None if value is None else next(written) for value in values])
    assert not bad
    assert found == values


# The registry.


def test_a_schema_is_asked_for_once_in_a_process(registry):
    data = registry.avro([{"id": 1}, {"id": 2}], record(id="long"))
    registry.asked.clear()
    for _ in range(3):
        agreed(decoder(registry, "id bigint"), data * 2)
    assert len(registry.asked) == 1 and registry.asked[0].startswith("/schemas/ids/")


def test_making_a_decoder_asks_nobody():
    url = {"schema.registry.url": "http://127.0.0.1:9"}
    made = decoder_of(parse(DecodingOptions, {"value.format": "avro", **url}), "value", "struct<id: int>")
    assert ddl_of(made.type) == "struct<id: int>"


def test_an_unknown_id_is_asked_for_again_with_the_next_records(registry):
    made = decoder(registry, "id bigint")
    id = registry.next_id
    for _ in range(2):
        bad = {}
        assert made.values([framed(id, b"\x02"), framed(id, b"\x04")], bad) == [None, None]
        assert list(bad) == [0, 1]
    assert registry.asked == [f"/schemas/ids/{id}"] * 2
    assert registry.register(record(id="long")) == id
    assert agreed(made, [framed(id, b"\x02")]) == ([{"id": 1}], {})


def test_a_registry_that_fails_for_a_moment_is_asked_again(registry):
    data = registry.avro([{"id": 1}], record(id="long"))
    registry.failures += [503]
    assert agreed(decoder(registry, "id bigint"), data) == ([{"id": 1}], {})


@pytest.mark.parametrize("policy", ["dead-letter", "fail", "null", "drop"])
def test_a_registry_that_is_down_fails_the_task_whatever_happens_to_bad_records(registry, policy):
    data = registry.avro([{"id": 1}], record(id="long"))
    registry.failures += [500] * 2
    made = decoding(registry, {"value": "struct<id: bigint>"}, **{"decode.errors": policy})
    with pytest.raises(WorldError, match=r"does not give schema .*schema\.registry\.timeout.*Given: 'http"):
        made.decode_lists({"value": data}, str)
    assert made.decode_lists({"value": data}, str) == ({"value": [{"id": 1}]}, None, ())


def test_nobody_listening_is_said():
    with schema_registry() as gone:
        data = gone.avro([{"id": 1}], record(id="long"))
    with pytest.raises(WorldError, match="see that it runs"):
        decoder(gone, "id bigint").values(data, {})


def test_users_are_known_by_their_password():
    with schema_registry("me:secret") as registry:
        data = registry.avro([{"id": 1}], record(id="long"))
        assert agreed(decoder(registry, "id bigint"), data) == ([{"id": 1}], {})
        with pytest.raises(WorldError, match=r"refuses to give schema .*basic\.auth\.user\.info") as raised:
            decoder(registry, "id bigint", **{"schema.registry.basic.auth.user.info": "me:wrong"}).values(data, {})
        assert "wrong" not in str(raised.value)


def test_a_registry_with_tls_is_verified_by_the_given_certificate(tmp_path):
    with schema_registry(certificate=self_signed(tmp_path / "registry.pem")) as registry:
        data = registry.avro([{"id": 1}], record(id="long"))
        assert agreed(decoder(registry, "id bigint"), data) == ([{"id": 1}], {})
        trusting = {**registry.options, "schema.registry.max.retries": 0}
        del trusting["schema.registry.ssl.ca.location"]
        stranger = parse(DecodingOptions, {"value.format": "avro", "value.schema": "id bigint", **trusting})
        with pytest.raises(WorldError, match="CERTIFICATE_VERIFY_FAILED"):
            decoder_of(stranger, "value").values(data, {})


def test_a_configuration_that_the_client_refuses_is_an_error_of_options(registry):
    data = registry.avro([{"id": 1}], record(id="long"))
    with pytest.raises(OptionError, match=r"'schema\.registry\.\*' are none for Confluent's client"):
        decoder(registry, "id int", **{"schema.registry.ssl.ca.location": "/nowhere.pem"}).values(data, {})


@pytest.mark.parametrize("package", ["fastavro", "confluent_kafka.schema_registry"])
def test_a_package_that_is_missing_is_named_with_the_extra_that_has_it(registry, monkeypatch, package):
    data = registry.avro([{"id": 1}], record(id="long"))
    for module in ("avro", "avro_schema", "registry"):
        monkeypatch.delitem(sys.modules, f"pystorm_source.formats.{module}", raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(OptionError, match=rf"{re.escape(installing('avro'))}.*{package}"):
        decoder(registry, "id bigint").values(data, {})
