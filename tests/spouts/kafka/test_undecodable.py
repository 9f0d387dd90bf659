"""Records that cannot be decoded, read from a real broker: an error, a row of dead letters, a null, or dropped; and
always counted."""

import base64
import json
import logging
from collections import namedtuple

import pytest

from pystorm_source import Bolt, Topology
from pystorm_source.errors import OptionError, SchemaError
from pystorm_source.testing import run_topology
from tests.formats.protobuf_files import descriptor_file, proto
from tests.formats.schema_registry import schema_registry
from tests.spouts.drive import Driven
from tests.spouts.kafka.topic import SPOUTS, Topic

POLICY = "topology.dead.letter"
ERRORS = "decode.errors"
FIELDS = ["key string", "value struct<id: int>", "offset long"]
GOOD = b'{"id": 7}'

DeadLetter = namedtuple("DeadLetter", "component reason attempts partition offset values time")

both = pytest.mark.parametrize("cls", SPOUTS)


def spec(topic, cls, fields=FIELDS, **config):
    return cls.spec(
        servers=topic.cluster.bootstrap,
        subscribe=topic.name,
        fields=fields,
        config={"value.format": "json", **{key.replace("_", "."): value for key, value in config.items()}},
    )


def run(topic, cls, **config):
    return run_topology(type("Made", (Topology,), {"orders": spec(topic, cls, **config)}), timeout=30, errors="collect")


@pytest.fixture(scope="module")
def topic(kafka):
    """Offsets 1, 3 and 4 cannot be decoded."""
    topic = Topic(kafka)
    topic.write([GOOD, b"no json", None, b'{"id": 3000000000}'], key="k")
    topic.write([GOOD], key=b"\xff")
    topic.write([GOOD], key="k")
    return topic


GOOD_ROWS = [("k", {"id": 7}, 0), ("k", None, 2), ("k", {"id": 7}, 5)]


def rows(result):
    return [tuple(row) for row in result.rows("orders")]


@both
def test_the_task_fails_and_names_topic_partition_offset_reason_and_remedy(topic, cls):
    result = run(topic, cls)
    (error,) = result.errors
    assert isinstance(error.__cause__, SchemaError)
    said = str(error)
    assert f"the value of the record at {topic.name}-0, offset 1, key b'k' cannot be decoded: JSON is malformed" in said
    assert "Set value.format" in said and "topology.dead.letter=stream or drop" in said and "b'no json'" in said
    assert result.dead_letters["orders"] == 1


@both
@pytest.mark.parametrize("format", ["avro", "protobuf"])
@pytest.mark.parametrize(
    ("written", "reason"),
    [
        (b"\0\0\0\x03\xe7...", "has no schema 999"),
        (b"plain", "does not begin with a zero byte"),
    ],
)
def test_an_unknown_schema_and_what_has_none_are_named(kafka, cls, format, written, reason):
    topic = Topic(kafka)
    topic.write([written])
    with schema_registry() as registry:
        config = {"value.format": format, **{key.replace("_", "."): v for key, v in registry.options.items()}}
        (error,) = run(topic, cls, **config).errors
    assert f"{topic.name}-0, offset 0, key None cannot be decoded: " in str(error) and reason in str(error)


@both
def test_damaged_messages_of_protobuf_are_dead_letters(kafka, tmp_path, cls):
    topic = Topic(kafka)
    topic.write([b"\x08\x07", b"\x08", b"\x08\x07"])
    path = descriptor_file(tmp_path / "shop.desc", proto("o.proto", {"Order": {"id": "int32"}}))
    given = {"value.format": "protobuf", "value.protobuf.descriptor.file": path, "value.protobuf.message": "shop.Order"}
    result = run(topic, cls, **given, **{POLICY: "stream"})
    assert rows(result) == [(None, {"id": 7}, 0), (None, {"id": 7}, 2)]
    (letter,) = (DeadLetter(*row) for row in result.rows("orders", "__dead_letter"))
    assert letter.offset == 1 and "cannot be decoded: Error parsing message" in letter.reason
    assert (result.dead_letters["orders"], result.dropped["orders"]) == (1, 0)


@both
def test_a_dead_letter_is_a_row_with_the_bytes_of_the_record(topic, cls):
    result = run(topic, cls, **{POLICY: "stream"})
    assert not result.errors
    assert rows(result) == GOOD_ROWS
    letters = [DeadLetter(*row) for row in result.rows("orders", "__dead_letter")]
    assert [(row.component, row.attempts, row.partition, row.offset) for row in letters] == [
        ("orders", 0, f"{topic.name}-0", offset) for offset in (1, 3, 4)
    ]
    found = [[key and base64.b64decode(key), base64.b64decode(value), offset]
             for key, value, offset in (json.loads(row.values) for row in letters)]  # fmt: skip
    assert found == [[b"k", b"no json", 1], [b"k", b'{"id": 3000000000}', 3], [b"\xff", GOOD, 4]]
    assert "offset 3, key b'k' cannot be decoded: " in letters[1].reason
    assert letters[2].reason.startswith(f"the key of the record at {topic.name}-0, offset 4")
    assert (result.dead_letters["orders"], result.dropped["orders"]) == (3, 0)


@both
@pytest.mark.parametrize("option", [{POLICY: "drop"}, {ERRORS: "drop"}], ids=["topology", "decoding"])
def test_dropped_records_are_counted_and_warned_of_once(topic, cls, option, caplog):
    caplog.set_level(logging.WARNING)
    result = run(topic, cls, **option)
    assert not result.errors
    assert rows(result) == GOOD_ROWS
    assert (result.dead_letters["orders"], result.dropped["orders"]) == (3, 3)
    (warning,) = [message for message in caplog.messages if "drops a tuple" in message]
    ((key, value),) = option.items()
    assert f"as {key} is {value}" in warning and f"{topic.name}-0, offset 1" in warning


@both
def test_null_keeps_the_record_and_counts_it(topic, cls, caplog):
    caplog.set_level(logging.WARNING)
    result = run(topic, cls, **{ERRORS: "null"})
    assert not result.errors
    bad = [("k", None, 1), ("k", None, 3), (None, {"id": 7}, 4)]
    assert rows(result) == sorted([*GOOD_ROWS, *bad], key=lambda row: row[2])
    assert result.metrics["orders"]["decode.errors.null"]["sum"] == 3
    assert result.dead_letters["orders"] == 0
    (warning,) = [message for message in caplog.messages if "cannot be decoded" in message]
    assert f"{topic.name}-0, offset 1" in warning


@both
def test_fail_fails_where_other_tuples_may_be_dropped(topic, cls):
    (error,) = run(topic, cls, **{ERRORS: "fail", POLICY: "drop"}).errors
    assert f"{topic.name}-0, offset 1" in str(error)


@both
def test_null_and_not_null_exclude_each_other(topic, cls):
    with pytest.raises(OptionError, match="decode.errors=null.*not null"):
        Driven(spec(topic, cls, ["value struct<id: int> not null"], **{ERRORS: "null"}))


@both
def test_who_reads_dead_letters_is_given_turns_between_the_chunks(kafka, cls):
    topic = Topic(kafka)
    topic.write([b"x"] * 2000)
    seen = []

    class Noted(cls):
        def _bury(self, values, offset, lost):
            seen.append("read")
            super()._bury(values, offset, lost)

    class Bury(Bolt):
        outputs = ["offset long"]

        def process(self, tup):
            seen.append("buried")
            self.emit((tup.values.offset,))

    class Buried(Topology):
        orders = spec(topic, Noted, **{POLICY: "stream"})
        bury = Bury.spec(inputs=[orders["__dead_letter"]])

    result = run_topology(Buried, timeout=30)
    assert [offset for (offset,) in result.rows("bury")] == list(range(2000))
    assert "buried" in seen[:1000] and seen.count("read") == 2000
