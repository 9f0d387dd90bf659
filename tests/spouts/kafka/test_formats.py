"""Keys and values in a format, read from a real broker: as tuples, as Arrow batches, and into Spark's columns."""

import datetime
import decimal

import pytest

from pystorm_source import Topology, read
from pystorm_source.errors import OptionError, SchemaError
from pystorm_source.formats.protobuf_schema import type_of
from pystorm_source.spouts import KafkaBatchSpout, KafkaSpout
from pystorm_source.types.arrow import ddl_of
from tests.docs.pages import ROOT, blocks
from tests.formats.protobuf_files import descriptor_file, message_of, proto
from tests.formats.schema_registry import schema_registry
from tests.spouts.drive import Driven
from tests.spouts.kafka.topic import SPOUTS, Topic, values_of

ORDER = "struct<id: bigint, item: string>"
AVRO = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "item", "type": ["null", "string"]}],
}
PROTO = proto(
    "order.proto",
    {
        "Key": {"name": "string"},
        "Order": {"id": "int64", "item": "optional string", "at": ".google.protobuf.Timestamp"},
    },
    imports=["google/protobuf/timestamp.proto"],
)
TEA, NONE = {"id": 1, "item": "tea"}, {"id": 2, "item": None}

both = pytest.mark.parametrize("cls", SPOUTS)


@pytest.fixture(scope="module")
def registry():
    with schema_registry() as found:
        yield found


@both
def test_text(kafka, cls):
    topic = Topic(kafka)
    topic.write(["käse", None], key="k")
    driven = topic.spout(cls, ["key string", "value string"], key_format="string", value_format="string")
    assert driven.read(f"{topic.name}-0", 0, 2)[0][1] == ("k", "käse")


@both
def test_json(kafka, cls):
    topic = Topic(kafka)
    topic.write([b'{"id": 1, "item": "tea"}', None, b'{"id": 2, "more": 0}'])
    driven = topic.spout(cls, [f"value {ORDER}", "offset long"], value_format="json")
    assert [row for _, row in driven.read(f"{topic.name}-0", 0, 3)] == [(TEA, 0), (None, 1), (NONE, 2)]


@both
def test_avro_keys_and_values(kafka, registry, cls):
    topic = Topic(kafka)
    (key,) = registry.avro(["k"], "string")
    topic.write([*registry.avro([TEA, NONE], AVRO), None], key=key)
    driven = topic.spout(
        cls, ["key string", f"value {ORDER}"], key_format="avro", value_format="avro", **registry.options
    )
    assert [row for _, row in driven.read(f"{topic.name}-0", 0, 3)] == [("k", TEA), ("k", NONE), ("k", None)]


@both
def test_protobuf_keys_and_values(kafka, registry, cls):
    topic = Topic(kafka)
    order = message_of("shop.Order", PROTO)
    (key,) = registry.protobuf([message_of("shop.Key", PROTO)(name="k")])
    topic.write([*registry.protobuf([order(**TEA), order(**NONE)]), None], key=key)
    driven = topic.spout(
        cls,
        ["key struct<name: string>", f"value {ORDER}"],
        key_format="protobuf",
        value_format="protobuf",
        **registry.options,
    )
    name = {"name": "k"}
    assert [row for _, row in driven.read(f"{topic.name}-0", 0, 3)] == [(name, TEA), (name, NONE), (name, None)]


@both
def test_plain_protobuf_by_a_descriptor_file_declares_the_field(kafka, tmp_path, cls):
    topic = Topic(kafka)
    topic.write([message_of("shop.Order", PROTO)(**TEA).SerializeToString(), b"", None])
    config = {
        "value.format": "protobuf",
        "value.protobuf.descriptor.file": descriptor_file(tmp_path / "shop.desc", PROTO),
        "value.protobuf.message": "shop.Order",
    }
    spec = cls.spec(servers=kafka.bootstrap, subscribe=topic.name, fields=["value"], config=config)
    assert spec.streams[0].types == ("struct<id: bigint, item: string, at: timestamp>",)
    assert values_of(Driven(spec).read(f"{topic.name}-0", 0, 3)) == [
        {**TEA, "at": None}, {"id": 0, "item": None, "at": None}, None,
    ]  # fmt: skip


@both
def test_json_of_confluents_serializer(kafka, registry, cls):
    topic = Topic(kafka)
    schema = {"title": "Order", "type": "object", "properties": {"id": {"type": "integer"}}}
    topic.write(registry.json([{"id": 2}], schema))
    assert values_of(topic.spout(cls, [f"value {ORDER}"], value_format="json").read(f"{topic.name}-0", 0, 1)) == [NONE]


@both
def test_a_record_that_cannot_be_decoded_is_named(kafka, cls):
    topic = Topic(kafka)
    topic.write([b'{"id": 1}', b"[]"], key="k")
    with pytest.raises(Exception) as caught:
        topic.spout(cls, [f"value {ORDER}"], value_format="json").read(f"{topic.name}-0", 0, 2)
    cause = caught.value if isinstance(caught.value, SchemaError) else caught.value.__cause__
    assert isinstance(cause, SchemaError)
    assert f"the value of the record at {topic.name}-0, offset 1, key b'k' cannot be decoded" in str(cause)


@both
def test_dropped_records_leave_no_row_and_the_range_ends(kafka, cls):
    topic = Topic(kafka)
    topic.write([b"x"] * 1200 + [b'{"id": 2}', b"x"])
    driven = topic.spout(cls, [f"value {ORDER}", "offset long"], value_format="json", decode_errors="drop")
    spout = driven.instance("task")
    assert [row for _, row in driven.read(f"{topic.name}-0", 0, 1202, spout)] == [(NONE, 1200)]
    assert driven.read(f"{topic.name}-0", 0, 1200, spout) == []
    spout.cleanup()


def test_formats_in_the_configuration_give_the_fields_their_types():
    config = {"value.format": "json", "value.schema": "id bigint, item string", "key.format": "string"}
    (stream,) = KafkaSpout.spec(config=config, include_headers=True).streams
    types = dict(zip(stream.fields, stream.types, strict=True))
    assert (types["key"], types["value"], types["offset"]) == ("string", ORDER, "long") and "headers" in types
    (stream,) = KafkaSpout.spec(config={"value.format": "json"}).streams
    assert dict(zip(stream.fields, stream.types, strict=True))["value"] is None


def test_columns_need_a_type(kafka):
    with pytest.raises(OptionError, match=r"fields \['value'\] need a type to be columns"):
        Topic(kafka).spout(KafkaBatchSpout, ["value"], value_format="json")


def test_tuples_need_none(kafka):
    topic = Topic(kafka)
    topic.write([b'{"any": [1, {"thing": null}]}'])
    assert values_of(topic.spout(KafkaSpout, ["value"], value_format="json").read(f"{topic.name}-0", 0, 1)) == [
        {"any": [1, {"thing": None}]}
    ]


def rows_of_both(spark, kafka, topic, config):
    """The rows of the topic, by tuples and by columns."""
    for spout in (KafkaSpout, KafkaBatchSpout):

        class Records(Topology):
            records = spout.spec(servers=kafka.bootstrap, subscribe=topic.name, config=config)

        found = read(spark, Records).select("value.*", "offset").orderBy("offset").collect()
        yield [row.asDict(recursive=True) for row in found]


@pytest.mark.spark
@pytest.mark.timeout(240)
def test_all_types_become_sparks_columns(spark, kafka, registry):
    topic = Topic(kafka)
    fields = {
        "id": "long", "tags": {"type": "array", "items": "string"}, "counts": {"type": "map", "values": "int"},
        "at": {"type": "long", "logicalType": "timestamp-millis"}, "day": {"type": "int", "logicalType": "date"},
        "price": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
        "inner": {"type": "record", "name": "In", "fields": [{"name": "x", "type": ["null", "double"]}]},
    }  # fmt: skip
    schema = {"type": "record", "name": "All", "fields": [{"name": name, "type": t} for name, t in fields.items()]}
    at = datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.UTC)
    written = {
        "id": 1, "tags": ["a"], "counts": {"n": 3}, "at": at, "day": at.date(), "price": decimal.Decimal("1.25"),
        "inner": {"x": None},
    }  # fmt: skip
    topic.write([*registry.avro([written], schema), None])
    ddl = (
        "id bigint not null, tags array<string>, counts map<string,int>, at timestamp, day date, price decimal(10,2), "
        "inner struct<x: double>"
    )
    config = {"value.format": "avro", "value.schema": ddl, **registry.options}

    for rows in rows_of_both(spark, kafka, topic, config):
        assert rows == [
            {**written, "at": at.astimezone().replace(tzinfo=None), "offset": 0},
            {**dict.fromkeys(written), "offset": 1},
        ]


@pytest.mark.spark
@pytest.mark.timeout(240)
def test_messages_become_sparks_columns(spark, kafka, registry):
    fields = {
        "id": "uint32", "big": "uint64", "tags": "repeated string", "counts": "map<string, int32>", "size": "Size",
        "at": ".google.protobuf.Timestamp", "took": ".google.protobuf.Duration", "data": "bytes", "inner": "In",
    }  # fmt: skip
    imports = [f"google/protobuf/{name}.proto" for name in ("timestamp", "duration")]
    file = proto("all.proto", {"All": fields, "In": {"x": "optional double"}}, {"Size": {"S": 0, "L": 1}}, imports)
    at = datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.UTC)
    message = message_of("shop.All", file)(
        id=2**32 - 1, big=2**64 - 1, tags=["a"], counts={"n": 3}, size="L", at=at, took=datetime.timedelta(1, 1, 1),
        data=b"\0", inner={},
    )  # fmt: skip
    topic = Topic(kafka)
    topic.write([*registry.protobuf([message]), None])
    ddl = ddl_of(type_of(message.DESCRIPTOR))
    config = {"value.format": "protobuf", "value.schema": ddl, **registry.options}

    for rows in rows_of_both(spark, kafka, topic, config):
        assert rows == [
            {
                "id": 2**32 - 1, "big": decimal.Decimal(2**64 - 1), "tags": ["a"], "counts": {"n": 3}, "size": "L",
                "at": at.astimezone().replace(tzinfo=None), "took": datetime.timedelta(1, 1, 1), "data": b"\0",
                "inner": {"x": None}, "offset": 0,
            },
            {**dict.fromkeys(fields), "offset": 1},
        ]  # fmt: skip


@pytest.mark.spark
@pytest.mark.timeout(240)
def test_the_example_of_the_page(spark, kafka):
    topic = Topic(kafka)
    topic.write([b'{"item": "rug", "price": 250.5, "at": "2024-02-29T12:00:00Z"}', b"{", None], key="me")
    topic.write([b'{"item": "tea", "price": 2}'], key="you")
    block, _ = blocks(ROOT / "docs/KAFKA.md", "python")
    text = block.text.replace("broker:9092", kafka.bootstrap).replace('"orders"', repr(topic.name))
    names = {"__name__": "__main__", "spark": spark}
    exec(compile("\n" * (block.line - 1) + text, "docs/KAFKA.md", "exec"), names)
    assert [tuple(row) for row in names["expensive"].collect()] == [("me", "rug", decimal.Decimal("250.50"))]
