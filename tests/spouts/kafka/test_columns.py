"""Records as Arrow batches: the same rows, dead letters and reasons as by tuple. Without a broker."""

from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pystorm_source.spouts import KafkaBatchSpout, KafkaSpout
from pystorm_source.spouts.kafka import records as kafka_records
from pystorm_source.spouts.kafka import spout as kafka_spout
from pystorm_source.spouts.kafka.records import HEADERS
from pystorm_source.spouts.kafka.topics import Partition
from tests.formats.decoded import as_tuples_have_it
from tests.formats.odd_values import JSON_TYPES, VALUES
from tests.sizes import sized
from tests.spouts.drive import Driven


class Message:
    """As confluent-kafka gives one."""

    def __init__(self, key, value, kind, millis, headers):
        self.parts = key, value, kind, millis, headers

    def key(self):
        return self.parts[0]

    def value(self):
        return self.parts[1]

    def timestamp(self):
        return self.parts[2:4]

    def headers(self):
        return self.parts[4]


def read(cls, fields, config, chunks):
    """(Rows, what was buried) of these chunks; columns in batches of their declared types."""
    buried, rows = [], []

    class Noted(cls):
        def _bury(self, values, offset, lost):
            self._yields = True
            buried.append((values, offset, lost.reason))

        def emit(self, values, offset):
            rows.append(tuple(values))

    driven = Driven(Noted.spec(servers="none:1", subscribe="t", fields=fields, config=config))
    spout = driven.instance("task")
    spout._at = Partition("t", 3, 0)
    spout._chunks = iter([(offsets, list(messages)) for offsets, messages in chunks])
    if cls is KafkaSpout:
        while spout.next_tuple() is not False:
            pass
    else:
        while (batch := spout.next_batch()) is not None:
            batch.validate(full=True)
            columns = [[as_tuples_have_it(value, each.type) for value in each.to_pylist()] for each in batch.columns]
            rows += zip(*columns, strict=True)
    return repr(rows), buried


KEYS = st.sampled_from([None, b"", b"k", b"\xff", "käse".encode()])
STAMPS = st.sampled_from([(0, -1), (1, 0), (1, 1_700_000_000_123), (2, 1_700_000_000_999), (1, -5)])
HEAD = st.sampled_from([None, [], [("h", b"v"), ("h", None)]])


@st.composite
def topics(draw):
    ddl = draw(st.sampled_from(JSON_TYPES))
    member = st.sampled_from(VALUES).map(lambda value: b'{"a": %s}' % value.encode())
    odd = st.sampled_from([None, b"", b"{}", b"null", b"x", b'{"a": null, "b": "\xc3\xa9"}', b"\0\0\0\0\7{}"])
    values = member | odd if draw(st.booleans()) else st.sampled_from([None, b"{}", b'{"b": "x"}'])
    messages = draw(
        st.lists(st.builds(lambda k, v, t, h: Message(k, v, *t, h), KEYS, values, STAMPS, HEAD), max_size=30)
    )
    sizes = draw(st.lists(st.integers(1, 3), min_size=30, max_size=30))
    chunks, offset = [], 0
    while messages:
        count = min(sizes.pop(), len(messages))
        gap = draw(st.sampled_from([0, 0, 0, 5]))
        offsets = range(offset + gap, offset + gap + count) if gap < 5 else [offset + 5 * n for n in range(count)]
        chunks.append((offsets, messages[:count]))
        messages, offset = messages[count:], offsets[-1] + 1
    not_null = draw(st.sampled_from(["", "", " not null"]))
    value = draw(st.sampled_from([f"value struct<a: {ddl}, b: string>{not_null}", "value string", "value"]))
    others = ["offset", "timestamp", "timestampType", "topic", "partition", HEADERS, "key string", "key"]
    fields = [value, *draw(st.lists(st.sampled_from(others), unique_by=lambda name: name[:3], max_size=5))]
    config = {"value.format": "json"} if "struct" in value else {}
    if draw(st.booleans()) and not (not_null and "struct" in value):
        config["decode.errors"] = "null"
    return fields, config, chunks


@given(topics())
@settings(max_examples=sized(150), deadline=None)
def test_batches_have_the_rows_and_dead_letters_of_tuples(topic):
    with patch.object(kafka_spout, "CHUNK", 2), patch.object(kafka_records, "MOST_AT_ONCE", 8):
        assert read(KafkaBatchSpout, *topic) == read(KafkaSpout, *topic)


def sizes(field, config, values):
    """Rows of each batch that is decoded, of chunks of two."""
    config = {"decode.errors": "drop", **config}
    driven = Driven(KafkaBatchSpout.spec(servers="none:1", subscribe="t", fields=[field], config=config))
    spout = driven.instance("task")
    spout._at = Partition("t", 3, 0)
    messages = [Message(None, value, 1, 0, None) for value in values]
    spout._chunks = iter([(range(at, at + 2), messages[at : at + 2]) for at in range(0, len(messages), 2)])
    decoded = []
    while (batch := spout._decoded()) is not None:
        decoded.append(batch.num_rows)
    return decoded


@pytest.mark.parametrize(
    ("field", "config", "expected"),
    [
        ("value", {}, [2, 4, 8, 16]),
        ("value struct<a: int>", {"value.format": "json"}, [2, 4, 8, 8, 8]),
        ("value map<string,int>", {"value.format": "json"}, [2] * 15),
    ],
)
def test_more_records_are_decoded_at_once_if_that_is_quicker(field, config, expected):
    with patch.object(kafka_spout, "CHUNK", 2), patch.object(kafka_records, "MOST_AT_ONCE", 8):
        assert sizes(field, config, [b'{"a": 1}'] * 30) == expected


def test_after_a_record_that_cannot_be_decoded_fewer_are_decoded_at_once():
    values = [b'{"a": 1}'] * 12 + [b"no json"] + [b'{"a": 1}'] * 17
    with patch.object(kafka_spout, "CHUNK", 2), patch.object(kafka_records, "MOST_AT_ONCE", 8):
        assert sizes("value struct<a: int>", {"value.format": "json"}, values) == [2, 4, 7, 2, 4, 8, 2]


@pytest.mark.parametrize(("field", "config"), [("value", {}), ("value struct<a: int>", {"value.format": "json"})])
def test_large_records_are_not_joined_beyond_the_bytes_of_a_batch(field, config):
    value = b'{"a": 1, "b": "' + b"x" * 1000 + b'"}'
    with patch.object(kafka_spout, "CHUNK", 2), patch.object(kafka_spout, "BATCH_BYTES", 2500):
        assert sizes(field, config, [value] * 20) == [2, 4, 4, 4, 4, 2]
