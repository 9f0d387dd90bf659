"""Records: keys and values of a broker's, lines of files. A mutant stands between two that are whole.

The two beside it are always read, with their offsets. Alike must be: a value as a tuple has it and in an Arrow column;
lines that are read as a block and one by one.
"""

import io
import json
import logging
import random
import re
from collections.abc import Callable
from functools import cached_property
from typing import Any

from fastavro import parse_schema, schemaless_writer

from pystorm_source.errors import SchemaError
from pystorm_source.formats.csv import Csv, CsvForm
from pystorm_source.formats.dead_letter_lines import DeadLetterLines
from pystorm_source.formats.decoding import Decoding
from pystorm_source.formats.lines import Faults, LineFormat, Lines, TextDecoder, Unreadable
from pystorm_source.formats.ndjson import NdJson
from pystorm_source.formats.options import DecodingOptions
from pystorm_source.options import parse
from tests.formats.decoded import plain
from tests.formats.protobuf_files import message_of, proto
from tests.formats.schema_registry import schema_registry
from tests.mutations.json_faults import spoiled
from tests.mutations.outcomes import refused
from tests.spouts.mutations import mutated

DDL = (
    "id bigint, small tinyint, item string, price decimal(10,2), at timestamp, day date, raw binary, x double, y float"
)
NESTED = f"{DDL}, ok boolean, list array<int>, map map<string,bigint>, deep struct<a: array<struct<b: string>>>"
JSON = [
    {"id": 1, "small": -5, "item": "tea", "price": "1.25", "at": "2024-02-29T12:00:00Z", "day": "2024-02-29", "x": 0.5},
    {"raw": "AAE=", "y": 1e30, "ok": True, "list": [1, None], "map": {"a": 1}, "deep": {"a": [{"b": "c"}]}},
    {"id": None, "item": "Sträßchen \ud83d\ude00", "list": [], "map": {}},
]
AVRO = {
    "type": "record",
    "name": "Row",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "item", "type": ["null", "string"]},
        {"name": "x", "type": "double"},
        {"name": "list", "type": {"type": "array", "items": "int"}},
        {"name": "map", "type": {"type": "map", "values": "long"}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
    ],
}
AVRO_DDL = (
    "id bigint, item string, x double, list array<int>, map map<string,bigint>, at timestamp, day date, "
    "price decimal(10,2)"
)
PROTO = proto(
    "row.proto",
    {
        "Item": {"name": "string", "size": "Size"},
        "Row": {
            "id": "int64", "item": "optional string", "x": "double", "list": "repeated int32", "raw": "bytes",
            "map": "map<string, uint64>", "at": ".google.protobuf.Timestamp", "took": ".google.protobuf.Duration",
            "items": "repeated Item", "name": "oneof string", "number": "oneof sfixed32",
        },
    },
    {"Size": {"S": 0, "L": 1}},
    ["google/protobuf/timestamp.proto", "google/protobuf/duration.proto"],
)  # fmt: skip
PROTO_DDL = (
    "id bigint, item string, x double, list array<int>, raw binary, map map<string,decimal(20,0)>, at timestamp, "
    "took interval day to second, items array<struct<name: string, size: string>>, name string, number int"
)
FIELDS = ("id", "small", "item", "price", "at", "ntz", "day", "x", "ok", "free")
TYPES = (
    "bigint",
    "tinyint",
    "string",
    "decimal(10,2)",
    "timestamp",
    "timestamp_ntz",
    "date",
    "double",
    "boolean",
    None,
)
CSV = [
    b'1,-5,"tea, black",1.25,2024-02-29T12:00:00Z,2024-02-29T12:00:00,2024-02-29,0.5,true,x\n',
    b"\\N,\\N,,0,2024-02-29 12:00:00+02:00,\\N,\\N,-inf,0,\n",
    '9223372036854775807,127,"Straße ""7""",-99999999.99,1970-01-01,1970-01-01,1970-01-01,1e300,FALSE,\\N\r\n'.encode(),
]
NDJSON = [
    b'{"id": 1, "small": -5, "item": "tea", "price": "1.25", "at": "2024-02-29T12:00:00Z", "day": "2024-02-29"}\n',
    b'{"ntz": "2024-02-29T12:00:00", "x": 0.5, "ok": true, "free": [1, {"a": null}]}\r\n',
    '{"item": "Sträßchen\\n", "more": {}, "id": 9223372036854775807, "price": 1.5}\n'.encode(),
]
LETTERS = [
    b'{"component":"b","reason":"Value: no","attempts":2,"partition":"a","offset":7,"values":"[1,\\"tea\\",0.5]"}\n',
    '{"values":"[null,\\"Sträßchen\\",1e30]","reason":"Zeitüberschreitung","query":"q","batch":3}\n'.encode(),
    b'{"values":"[9223372036854775807,null,null]"}\n',
]
LINES = [b"one\n", "zwölf\r\n".encode(), b"\n"]
logger = logging.getLogger("pystorm.mutations")


Mutator = Callable[[bytes, random.Random], bytes]


class Records:
    """Mutants of records in all formats."""

    def json(self, rng: random.Random) -> str:
        records = [json.dumps(each).encode() for each in JSON]
        return _decoded(self._json, records, rng, spoiled)

    def avro(self, rng: random.Random) -> str:
        return _decoded(self._avro, self._avro_records, rng)

    def protobuf(self, rng: random.Random) -> str:
        return _decoded(self._protobuf, self._protobuf_records, rng)

    def lines(self, rng: random.Random) -> str:
        return _lines(lambda faults: Lines(TextDecoder("utf-8", "strict"), faults), LINES, rng)

    def csv(self, rng: random.Random) -> str:
        def build(faults: Faults) -> LineFormat:
            return Csv(FIELDS, TYPES, CsvForm(TextDecoder("utf-8", "strict"), False, null="\\N"), faults)

        return _lines(build, CSV, rng)

    def ndjson(self, rng: random.Random) -> str:
        return _lines(lambda faults: NdJson(FIELDS, TYPES, faults), NDJSON, rng, spoiled)

    def letters(self, rng: random.Random) -> str:
        def build(faults: Faults) -> LineFormat:
            about = ("reason", "attempts", "offset")
            types = ("bigint", "string", "double", "string", "int", "bigint")
            return DeadLetterLines(("id", "item", "x", *about), types, about, "", re.compile(""), faults)

        return _lines(build, LETTERS, rng, spoiled)

    @cached_property
    def _json(self) -> Decoding:
        return _decoding({"value.format": "json", "value.schema": NESTED})

    @cached_property
    def _avro(self) -> Decoding:
        return _decoding({"value.format": "avro", "value.schema": AVRO_DDL, **self._registry.options})

    @cached_property
    def _protobuf(self) -> Decoding:
        return _decoding({"value.format": "protobuf", "value.schema": PROTO_DDL, **self._registry.options})

    @cached_property
    def _registry(self) -> Any:
        """It listens as long as this process lives."""
        self._open = schema_registry()
        return self._open.__enter__()

    @cached_property
    def _avro_records(self) -> list[bytes]:
        head = b"\0" + self._registry.register(AVRO).to_bytes(4, "big")
        parsed = parse_schema(AVRO)
        found = []
        for id, item in ((1, "tea"), (-(2**62), None), (7, "Sträßchen")):
            out = io.BytesIO()
            row = {"id": id, "item": item, "x": 0.5, "list": [1, 2], "map": {"a": 1}, "at": 10**15, "day": 20_000}
            schemaless_writer(out, parsed, {**row, "price": b"\x7d"})
            found.append(head + out.getvalue())
        return found

    @cached_property
    def _protobuf_records(self) -> list[bytes]:
        return self._registry.protobuf(_protobuf_rows())


def _decoding(options: dict[str, Any]) -> Decoding:
    return Decoding(parse(DecodingOptions, options), {"value": None}, logger)


def _protobuf_rows() -> list[Any]:
    row = message_of("shop.Row", PROTO)
    return [
        row(id=1, item="tea", x=0.5, list=[1, 2], raw=b"\0", map={"a": 2**64 - 1}, at={"seconds": 1, "nanos": 1000}),
        row(id=-(2**62), took={"seconds": -1, "nanos": -1000}, items=[{"name": "Sträßchen", "size": 1}, {}], name="n"),
        row(number=-7),
    ]


def _decoded(decoding: Decoding, records: list[bytes], rng: random.Random, mutated: Mutator = mutated) -> str:
    before, original, behind = rng.choice(records), rng.choice(records), rng.choice(records)
    mutant = mutated(original, rng)
    data = {"value": [before, mutant, None, behind]}
    lists = decoding.decode_lists(data, str)
    arrays = decoding.decode_arrays(data, str)
    assert [each.record for each in lists.lost] == [each.record for each in arrays.lost]
    assert all(each.record == 1 and "cannot be decoded" in each.reason for each in lists.lost), lists.lost
    assert lists.kept == arrays.kept == ([0, 2, 3] if lists.lost else None)
    values = lists.columns["value"]
    assert repr(plain(arrays.columns["value"], decoding.decoders["value"])) == repr(values), mutant
    whole = decoding.decode_lists({"value": [before, original, None, behind]}, str).columns["value"]
    assert [repr(values[0]), *map(repr, values[-2:])] == [repr(whole[0]), *map(repr, whole[-2:])]
    if lists.lost:
        return "refused"
    return "same" if repr(values) == repr(whole) else "other"


Build = Callable[[Faults], LineFormat]


def _lines(build: Build, lines: list[bytes], rng: random.Random, mutated: Mutator = mutated) -> str:
    before, original, behind = rng.choice(lines), rng.choice(lines), rng.choice(lines)
    mutant = mutated(original, rng).removesuffix(b"\n") + b"\n"
    start = rng.choice([0, 1000])
    block = [before, *mutant.splitlines(keepends=True), behind] if mutant.isascii() else [before, mutant, behind]
    block = [line + b"\n" for line in b"".join(block).split(b"\n")[:-1]]
    strict = _pairs(build, [b"".join(block)], start, skip=False)
    found = _pairs(build, [b"".join(block)], start, skip=True)
    assert found == _pairs(build, block, start, skip=True), "in one block as line by line"
    assert strict in (None, found)
    whole = _pairs(build, [before + original + behind], start, skip=True)
    assert found is not None and whole is not None
    shift = len(mutant) - len(original)
    assert found[:1] == whole[:1]
    if len(whole) > 1:
        values, offset = whole[-1]
        assert found[-1] == (values, offset + shift), "the line behind it"
    assert [offset for _, offset in found] == sorted({offset for _, offset in found})
    if strict is None:
        return "refused"
    return "same" if found == whole else "other"


def never_buried(lost: Unreadable) -> bool:
    raise AssertionError(f"a dead letter that was not asked for: {lost}")


def _pairs(build: Build, blocks: list[bytes], start: int, skip: bool) -> list[tuple[str, int]] | None:
    """Pairs with values as text; None if a line is refused."""
    format = build(Faults("skip" if skip else "fail", logger, never_buried))
    format.begin("file", b"")
    found = []
    try:
        for block in blocks:
            found += [(repr(values), offset) for values, offset in format.pairs(block, start, False)]
            start += len(block)
    except SchemaError as error:
        refused(error)
        return None
    return found
