"""``rescuedDataColumn``: fields and rescued JSON together hold all of the input, however the files are read."""

import datetime
import io
import json
import shutil
import tempfile
from decimal import Decimal
from pathlib import Path

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cython_core.executors.executor import ComponentFailed
from pystorm_source import Stream
from pystorm_source.errors import OptionError, SchemaError
from pystorm_source.spouts import DeadLetterSpout, FilesSpout, HttpSpout, ObjectsSpout
from tests.sizes import sized
from tests.spouts.drive import Driven
from tests.spouts.objects.lake import written
from tests.spouts.test_files_columns import by_columns, by_rows

SPOUTS = (FilesSpout, ObjectsSpout)
NAME = "_rescued_data"


def read(path, format, fields, spout=FilesSpout, rescued=NAME, **options):
    """The rows in their order, with the rescued JSON as a dict; the same by rows and by columns."""
    config = {"files.finished.after": "0s"} if spout is FilesSpout else {}
    config |= {f"files.{key}": value for key, value in options.items()}
    driven = Driven(spout.spec(path=path, format=format, fields=fields, rescued=rescued, config=config))
    heads = driven.driver.snapshot({}, {}).heads
    rows = [row for name, (start, end) in heads.items() for row in by_rows(driven, name, start, end)]
    if driven.instance("task")._has_columns():
        columns = [row for name, (start, end) in heads.items() for row in by_columns(driven, name, start, end)]
        assert repr(columns) == repr(rows)
    return [(*row[:-1], None if row[-1] is None else json.loads(row[-1])) for row in rows]


def refusal(*args, **options):
    with pytest.raises((ComponentFailed, SchemaError)) as raised:
        read(*args, **options)
    return str(raised.value.__cause__ or raised.value)


def write(folder, name, data):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(written(data) if isinstance(data, pa.Table) else data)
    return str(path)


def avro(folder, fields, rows):
    """An Avro object of these rows; ``fields``: types by name."""
    sink = io.BytesIO()
    named = [{"name": name, "type": type} for name, type in fields.items()]
    fastavro.writer(sink, fastavro.parse_schema({"type": "record", "name": "r", "fields": named}), rows)
    return write(folder, "a.avro", sink.getvalue())


# Types, and what fits them in JSON: by this test's own rules.
SCALARS = ["int", "double", "string", "boolean", "date", "decimal(5,2)"]
_types = st.recursive(
    st.sampled_from(SCALARS),
    lambda inner: st.one_of(
        inner.map(lambda each: ("array", each)),
        inner.map(lambda each: ("map", each)),
        st.dictionaries(st.sampled_from("abc"), inner, min_size=1, max_size=2).map(lambda each: ("struct", each)),
    ),
    max_leaves=4,
)
schemas = st.dictionaries(st.sampled_from("abcd"), _types, min_size=1, max_size=3)
_values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**40), 2**40),
        st.sampled_from([0, 7, 1.5, -2.25, 0.1, 1e300]),
        st.sampled_from(["", "x", "é", "2026-02-28", "2026-02-30", "1.50", '"\\\n']),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("abcA"), inner, max_size=3)),
    max_leaves=6,
)
documents = st.lists(
    st.dictionaries(st.sampled_from(["a", "b", "c", "d", "A", "", "é"]), _values, max_size=5), max_size=5
)


def ddl_of(type):
    if isinstance(type, str):
        return type
    kind, inner = type
    if kind == "struct":
        return f"struct<{', '.join(f'{name}: {ddl_of(each)}' for name, each in inner.items())}>"
    return f"array<{ddl_of(inner)}>" if kind == "array" else f"map<string, {ddl_of(inner)}>"


def fits(value, type):
    if value is None:
        return True
    if isinstance(type, str):
        return _scalar_fits(value, type)
    kind, inner = type
    if kind == "array":
        return isinstance(value, list) and all(fits(each, inner) for each in value)
    if not isinstance(value, dict):
        return False
    if kind == "map":
        return all(fits(each, inner) for each in value.values())
    return value.keys() <= inner.keys() and all(fits(each, inner[key]) for key, each in value.items())


def _scalar_fits(value, type):
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if type == "int":
        return is_number and value == int(value) and -(2**31) <= value < 2**31
    if type == "double":
        return is_number
    if type == "decimal(5,2)":
        return (
            (is_number or value == "1.50") and abs(number := Decimal(str(value))) < 1000 and number == round(number, 2)
        )
    if type == "date":
        return value == "2026-02-28"
    return isinstance(value, {"string": str, "boolean": bool}[type])


def holds(value, field, rest, is_rescued):
    """Whether a field and what was rescued of it together hold the value."""
    if not is_rescued:
        return same(value, field)
    if rest == value:  # in one piece
        return True
    return (
        isinstance(value, dict)
        and isinstance(rest, dict)
        and rest.keys() <= value.keys()
        and all(holds(each, (field or {}).get(key), rest.get(key), key in rest) for key, each in value.items())
    )


def same(value, field):
    if value is None or field is None:
        return value is field
    if isinstance(value, dict):
        field = dict(field)
        return all(same(each, field.get(key)) for key, each in value.items())
    if isinstance(value, list):
        return len(value) == len(field) and all(map(same, value, field))
    if isinstance(field, datetime.date):
        return value == field.isoformat()
    if isinstance(field, Decimal):
        return Decimal(str(value)) == field
    return isinstance(value, bool) == isinstance(field, bool) and value == field


@given(schemas, documents, st.sampled_from(SPOUTS))
@settings(max_examples=sized(300))
def test_no_value_of_json_is_lost(schema, rows, spout):
    folder = Path(tempfile.mkdtemp())
    try:
        path = write(folder, "a.json", "".join(json.dumps(row) + "\n" for row in rows).encode())
        found = read(
            folder if spout is ObjectsSpout else path, "ndjson", [f"{n} {ddl_of(t)}" for n, t in schema.items()], spout
        )
        assert len(found) == len(rows)
        for row, (*values, rest) in zip(rows, found, strict=True):
            rest = {} if rest is None else rest
            assert (rest == {}) == all(key in schema and fits(value, schema[key]) for key, value in row.items())
            assert not rest or rest.pop("_file_path") == path
            fields = dict(zip(schema, values, strict=True))
            assert rest.keys() == {key for key, each in row.items() if key not in schema or not fits(each, schema[key])}
            assert all(holds(each, fields.get(key), rest.get(key), key in rest) for key, each in row.items())
            assert all(fields[key] is None for key in schema.keys() - row.keys())
    finally:
        shutil.rmtree(folder)


def test_numbers_keep_their_digits_and_keys_of_other_case_are_not_fields(tmp_path):
    line = b'{"id": 1, "Id": 2, "n": 12345678901234567890.10, "s": {"x": 1e999, "y": "z"}, "_file_path": null}\n'
    path = write(tmp_path, "a.json", line)
    driven = Driven(
        FilesSpout.spec(path=path, format="ndjson", fields=["id long", "s struct<y: string>"], rescued=NAME)
    )
    ((name, (start, end)),) = driven.driver.snapshot({}, {}).heads.items()
    ((_, (*values, text)),) = driven.read(name, start, end)
    assert values == [1, {"y": "z"}]
    assert text == '{"_file_path":null,"Id":2,"n":12345678901234567890.10,"s":{"x":1e999}}'


@pytest.mark.parametrize(
    "line", [b'{"id": 1', b"[1]", b'{"id": 1, "x": "\xff"}', b'{"id": 1, "x": tru}', b'{"id": null}', b'{"x": 2}']
)
def test_lines_without_an_object_or_a_needed_value_are_malformed_as_ever(tmp_path, line):
    path = write(tmp_path, "a.json", b'{"id": 0}\n' + line + b'\n{"id": 2, "x": 3}\n')
    rescued = {"_file_path": path, "x": 3}
    assert read(path, "ndjson", ["id long not null"], malformed="skip") == [(0, None), (2, rescued)]
    assert "at byte 10" in refusal(path, "ndjson", ["id long not null"])


def test_an_object_that_fits_in_parts_keeps_them(tmp_path):
    path = write(
        tmp_path, "a.json", b'{"s": {"x": "1", "y": {"z": 2, "new": []}}, "l": [1, "2"], "m": [{"k": 1, "j": 2}]}\n'
    )
    fields = ["s struct<x: int, y: struct<z: int>>", "l array<int>", "m array<struct<k: int>>"]
    rest = {"s": {"x": "1", "y": {"new": []}}, "l": [1, "2"], "m": [{"k": 1, "j": 2}], "_file_path": path}
    assert read(path, "ndjson", fields) == [({"x": None, "y": {"z": 2}}, None, [{"k": 1}], rest)]


def test_an_old_pyarrow_is_refused_with_the_remedy(tmp_path, monkeypatch):
    path = write(tmp_path, "a.json", b"{}\n")
    monkeypatch.setattr(pa, "__version__", "19.0.1")
    says = r"pip install 'pyarrow>=20' on the driver and every executor. Given: pyarrow 19.0.1"
    with pytest.raises(OptionError, match=says):
        read(path, "ndjson", ["id long"])


NEEDED = ["s struct<x: int not null>"]


def test_a_struct_without_a_needed_member_is_rescued_in_one_piece(tmp_path):
    path = write(tmp_path, "a.json", b'{"s": {"x": "1", "y": 2}}\n')
    assert read(path, "ndjson", NEEDED) == [(None, {"s": {"x": "1", "y": 2}, "_file_path": path})]
    other = write(tmp_path, "a.parquet", pa.table({"s": [{"x": None, "y": 2}, {"x": 5, "y": None}]}))
    rest = {"s": {"x": None, "y": 2}, "_file_path": other}
    assert read(other, "parquet", NEEDED) == [(None, rest), ({"x": 5}, None)]


cells = st.sampled_from(["", "1", "-7", "x", "é", '"a,b"', "2147483648", " "])
CSV_TYPES = {"a": "int", "b": "string", "_c1": "int", "_c2": "string"}


@st.composite
def tables(draw):
    columns = draw(st.lists(st.sampled_from(["a", "b", "c", "A", "_c1", "_c2_"]), min_size=1, max_size=4))
    rows = draw(st.lists(st.lists(cells, min_size=len(columns), max_size=len(columns)), max_size=4))
    return columns, [row for row in rows if ",".join(row).strip()]


@given(tables(), st.lists(st.sampled_from(sorted(CSV_TYPES)), unique=True, min_size=1))
@settings(max_examples=sized(200))
def test_no_value_of_csv_is_lost(table, fields):
    columns, rows = table
    folder = Path(tempfile.mkdtemp())
    try:
        path = write(folder, "a.csv", "".join(",".join(row) + "\n" for row in [columns, *rows]).encode())
        found = read(path, "csv", [f"{name} {CSV_TYPES[name]}" for name in fields], header=True)
        assert len(found) == len(rows)
        for row, (*values, rest) in zip(rows, found, strict=True):
            rest = rest or {"_file_path": path}
            assert rest.pop("_file_path") == path
            kept = dict(zip(fields, values, strict=True))
            repeated = []
            for at, (name, text) in enumerate(zip(columns, row, strict=True)):
                text = text.strip('"') or None
                if name in columns[:at]:
                    repeated += [(at, text)] if text is not None else []
                elif name in kept and _csv_fits(text, CSV_TYPES[name]):
                    assert kept.pop(name) == (text and (int(text) if CSV_TYPES[name] == "int" else text))
                else:
                    assert rest.pop(name, None) == text
                    assert kept.pop(name, None) is None
            assert all(value is None for value in kept.values()), "of a field without a column"
            assert [(int(key.rstrip("_")[2:]), value) for key, value in rest.items()] == repeated
            assert not rest.keys() & {*columns, *fields}
    finally:
        shutil.rmtree(folder)


def _csv_fits(text, type):
    return text is None or type == "string" or text in ("1", "-7")


def test_a_repeated_name_of_a_header_takes_the_place_of_no_field(tmp_path):
    path = write(tmp_path, "a.csv", b"a,a,_c1\n1,2,3\n")
    rest = {"_file_path": path, "_c1_": "2"}
    assert read(path, "csv", ["a int", "_c1 int"], header=True) == [(1, 3, rest)]
    assert read(path, "csv", ["_c1 int"], header=True) == [(3, {**rest, "a": "1"})]


def test_a_further_value_of_csv_takes_the_place_of_no_field(tmp_path):
    path = write(tmp_path, "a.csv", b"x,1,2\n")
    rest = {"_file_path": path, "_c2": "x", "_c2_": "2"}
    assert read(path, "csv", ["_c2 int", "b int"]) == [(None, 1, rest)]


def test_values_of_csv_behind_the_last_field_have_the_names_that_spark_gives_them(tmp_path):
    path = write(tmp_path, "a.csv", b"1,x\n2,y,new,,4\n3\n")
    rest = {"_c2": "new", "_c4": "4", "_file_path": path}
    assert read(path, "csv", ["id int", "s string"], malformed="skip") == [(1, "x", None), (2, "y", rest)]
    assert "1 values instead of 2" in refusal(path, "csv", ["id int", "s string"])


def test_a_header_without_a_needed_column_is_an_error_as_ever(tmp_path):
    path = write(tmp_path, "a.csv", b"b\n1\n")
    assert read(path, "csv", ["a int", "b int"], header=True) == [(None, 1, None)]
    assert "has no column a" in refusal(path, "csv", ["a int not null", "b int"], header=True)


# Declared types for files whose values have types, and what fits these, by this test's own rules. !: not null.
_flat = st.sampled_from(["int", "double", "string", "boolean", "date"])
_needed = st.sampled_from(["int!", "string!"])
_shapes = {
    "flat": _flat,
    "list": _flat.map(lambda each: ("array", each)),
    "map": _flat.map(lambda each: ("map", each)),
    "struct": st.dictionaries(st.sampled_from("abz"), st.one_of(_flat, _needed), min_size=1).map(
        lambda each: ("struct", each)
    ),
}


@st.composite
def schema_of(draw, shapes):
    """A schema for columns of these shapes by name: some fields have the shape, and some columns have no field."""
    names = draw(st.sets(st.sampled_from("abcd"), min_size=1, max_size=3))
    any_shape = st.one_of(*_shapes.values())
    return {
        name: draw(_shapes[shapes[name]] if name in shapes and draw(st.integers(0, 3)) else any_shape)
        for name in sorted(names)
    }


_IN_PYTHON = {"int": (int, float), "double": (int, float), "string": (str,), "boolean": (bool,), "date": ()}


def split(value, type, are_maps):
    """What the field has, and what is rescued. ``are_maps``: whether a map may be declared for a dict."""
    if value is None:
        return None, None
    if isinstance(type, str):
        is_fit = value.__class__ in _IN_PYTHON[type]
        if type == "int" and is_fit:
            is_fit = value == int(value) and -(2**31) <= value < 2**31
        return (value, None) if is_fit else (None, value)
    kind, inner = type
    if kind == "array" and isinstance(value, list):
        is_fit = all(split(each, inner, are_maps)[1] is None for each in value)
        return (value, None) if is_fit else (None, value)
    if kind == "map" and isinstance(value, dict) and are_maps:
        is_fit = all(split(each, inner, are_maps)[1] is None for each in value.values())
        return (sorted(value.items()), None) if is_fit else (None, value)
    if kind != "struct" or not isinstance(value, dict):
        return None, value
    found = {name: split(value.get(name), each.rstrip("!"), are_maps) for name, each in inner.items()}
    if any(each.endswith("!") and found[name][0] is None for name, each in inner.items()):
        return None, value
    rest = {name: left for name, (_, left) in found.items() if left is not None}
    rest |= {name: each for name, each in value.items() if name not in inner and each is not None}
    return {name: fit for name, (fit, _) in found.items()}, rest or None


def assert_split(found, rows, schema, path, are_maps):
    """Whether the rows that were found are the written ones, split as they should be."""
    assert len(found) == len(rows)
    for row, (*values, rest) in zip(rows, found, strict=True):
        expected = {name: split(each, schema[name], are_maps) for name, each in row.items() if name in schema}
        values = [
            sorted(each) if isinstance(each, list) and _is_map(schema[name]) else each
            for name, each in zip(schema, values, strict=True)
        ]
        assert values == [expected.get(name, (None, None))[0] for name in schema]
        left = {name: each for name, (_, each) in expected.items() if each is not None}
        left |= {name: each for name, each in row.items() if name not in schema and each is not None}
        assert rest == ({**left, "_file_path": path} if left else None)


def _is_map(type):
    return type[0] == "map"


def declared(schema):
    return [f"{name} {ddl_of(each)}".replace("!", " not null") for name, each in schema.items()]


def _four(values):
    return st.lists(st.one_of(st.none(), values), min_size=4, max_size=4)


_longs = st.one_of(st.integers(-9, 9), st.integers(-(2**40), 2**40))
arrays = {
    "int": (_four(_longs), pa.int64()),
    "float": (_four(st.sampled_from([0.5, 3.0, -1e300])), pa.float64()),
    "text": (_four(st.sampled_from(["", "x", "é"])), pa.string()),
    "list": (_four(st.lists(_longs, min_size=1, max_size=2)), pa.list_(pa.int64())),
    "struct": (
        _four(st.fixed_dictionaries({"a": st.one_of(st.none(), _longs), "z": st.sampled_from(["é", None])})),
        pa.struct({"a": pa.int64(), "z": pa.string()}),
    ),
}


@st.composite
def parquet_tables(draw):
    """A schema and a table."""
    kinds = draw(st.dictionaries(st.sampled_from("abA"), st.sampled_from(sorted(arrays)), min_size=1))
    columns = {name: pa.array(draw(arrays[kind][0]), arrays[kind][1]) for name, kind in kinds.items()}
    return draw(schema_of({name: kind if kind in _shapes else "flat" for name, kind in kinds.items()})), columns


@given(parquet_tables(), st.sampled_from(SPOUTS))
@settings(max_examples=sized(400))
def test_no_value_of_parquet_is_lost(drawn, spout):
    schema, columns = drawn
    folder = Path(tempfile.mkdtemp())
    try:
        table = pa.table(columns)
        path = write(folder, "a.parquet", table)
        assert_split(read(folder, "parquet", declared(schema), spout), table.to_pylist(), schema, path, are_maps=False)
    finally:
        shutil.rmtree(folder)


_UNION = ["null", "boolean", "long", "double", "string"]
_in_union = st.one_of(st.none(), st.booleans(), _longs, st.sampled_from([0.5, 3.0]), st.sampled_from(["", "x", "é"]))
avro_kinds = {
    "flat": (_UNION, _in_union),
    "list": (["null", {"type": "array", "items": _UNION}], st.one_of(st.none(), st.lists(_in_union, max_size=2))),
    "map": (
        ["null", {"type": "map", "values": _UNION}],
        st.one_of(st.none(), st.dictionaries(st.sampled_from("abz"), _in_union)),
    ),
    "struct": (
        {"type": "record", "fields": [{"name": name, "type": _UNION} for name in "az"]},
        st.fixed_dictionaries({"a": _in_union, "z": _in_union}),
    ),
}


@st.composite
def avro_objects(draw):
    """A schema, types by name, and rows."""
    kinds = draw(st.dictionaries(st.sampled_from("abA"), st.sampled_from(sorted(avro_kinds)), min_size=1))
    fields = {name: avro_kinds[kind][0] for name, kind in kinds.items()}
    for name, kind in kinds.items():
        if kind == "struct":
            fields[name] = {**fields[name], "name": f"of_{name}"}
    rows = draw(
        st.lists(st.fixed_dictionaries({name: avro_kinds[kind][1] for name, kind in kinds.items()}), max_size=4)
    )
    return draw(schema_of(kinds)), fields, rows


@given(avro_objects())
@settings(max_examples=sized(400))
def test_no_value_of_avro_is_lost(drawn):
    schema, fields, rows = drawn
    folder = Path(tempfile.mkdtemp())
    try:
        path = avro(folder, fields, rows)
        assert_split(read(folder, "avro", declared(schema), ObjectsSpout), rows, schema, path, are_maps=True)
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize("spout", SPOUTS)
def test_parquet_whose_schema_grew_and_changed(tmp_path, spout):
    """First it lacks a field, then it has all, then a further column, at last another type."""
    write(tmp_path, "1.parquet", pa.table({"id": [1]}))
    write(tmp_path, "2.parquet", pa.table({"id": [2], "item": ["hat"]}))
    third = write(
        tmp_path, "3.parquet", pa.table({"id": [3], "item": ["cap"], "price": [Decimal("1.50")], "none": [None]})
    )
    fourth = write(tmp_path, "4.parquet", pa.table({"id": ["4", None], "item": ["tie", None], "Item": ["x", None]}))
    found = read(tmp_path, "parquet", ["id long", "item string"], spout)
    assert sorted(found, key=repr) == sorted(
        [
            (1, None, None),
            (2, "hat", None),
            (3, "cap", {"price": "1.50", "_file_path": third}),
            (None, "tie", {"id": "4", "Item": "x", "_file_path": fourth}),
            (None, None, None),
        ],
        key=repr,
    )


def test_parquet_of_values_that_python_or_json_does_not_have(tmp_path):
    nanos = pa.array([1, None], pa.timestamp("ns"))
    columns = {
        "id": pa.array([1, 2**40]),
        "late": pa.array([2932897, None], pa.date32()),
        "nanos": nanos,
        "raw": [b"\xff", None],
        "odd": [float("nan"), float("-inf")],
        "text": pa.array([b"\xff", None]).view(pa.string()),
        "map": pa.array([[("a", 1)], [("a", 1), ("a", 2)]], pa.map_(pa.string(), pa.int8())),
    }
    path = write(tmp_path, "a.parquet", pa.table(columns))
    (one, two) = read(path, "parquet", ["id int", "text string"])
    shown = {"late": "10000-01-01", "raw": "/w==", "odd": "NaN", "text": "/w==", "map": {"a": 1}, "_file_path": path}
    assert one[:2] == (1, None)
    assert one[2].pop("nanos").endswith("00:00:00.000000001")
    assert one[2] == shown
    rest = {"id": 2**40, "odd": "-Infinity", "map": [["a", 1], ["a", 2]], "_file_path": path}
    assert two == (None, None, rest)


def test_parquet_without_a_needed_value_is_malformed_as_ever(tmp_path):
    path = write(tmp_path, "a.parquet", pa.table({"id": [1, None, 2**40, 4], "x": [None, None, None, "y"]}))
    found = read(path, "parquet", ["id int not null"], malformed="skip")
    assert found == [(1, None), (4, {"x": "y", "_file_path": path})]
    assert "does not fit int not null" in refusal(path, "parquet", ["id int not null"])


def test_avro_whose_unions_hold_other_types(tmp_path):
    union = ["int", "string", "null", {"type": "record", "name": "q", "fields": [{"name": "k", "type": "bytes"}]}]
    schema = {"type": "record", "name": "r", "fields": [{"name": "id", "type": union}, {"name": "u", "type": "q"}]}
    rows = [{"id": n, "u": {"k": b"ab"}} for n in (1, "x", None)]
    sink = io.BytesIO()
    fastavro.writer(sink, fastavro.parse_schema(schema), rows)
    path = write(tmp_path, "a.avro", sink.getvalue())
    u = {"u": {"k": "YWI="}, "_file_path": path}
    assert read(tmp_path, "avro", ["id int"], ObjectsSpout) == [(1, u), (None, {**u, "id": "x"}), (None, u)]


def test_what_the_path_names_wins_and_the_content_is_rescued(tmp_path):
    path = write(tmp_path, "day=2026-01-01/a.json", b'{"id": 1, "day": "x", "_metadata": 2}\n')
    fields = ["day date", "_metadata struct<file_name:string>", "id int"]
    rest = {"day": "x", "_metadata": 2, "_file_path": path}
    day = datetime.date(2026, 1, 1)
    assert read(tmp_path, "ndjson", fields, ObjectsSpout) == [(day, {"file_name": "a.json"}, 1, rest)]


@pytest.mark.parametrize("format", ["ndjson", "csv", "parquet"])
def test_a_folder_does_not_name_the_rescued_field(tmp_path, format):
    data = {"ndjson": b'{"id": 1, "x": 2}\n', "csv": b"id,x\n1,2\n", "parquet": pa.table({"id": [1], "x": [2]})}[format]
    path = write(tmp_path, "more=a/1", data)
    rest = {"x": "2" if format == "csv" else 2, "_file_path": path}
    header = {"header": True} if format == "csv" else {}
    for spout in SPOUTS:
        assert read(tmp_path, format, ["id int"], spout, "more", recursive=True, **header) == [(1, rest)]


class Declared(FilesSpout):
    outputs = ["id long", "more string"]


def test_a_class_may_declare_the_field_itself(tmp_path):
    path = write(tmp_path, "a.json", b'{"id": 1, "x": 2}\n')
    driven = Driven(Declared.spec(path=path, format="ndjson", config={"rescuedDataColumn": "more"}))
    ((name, (start, end)),) = driven.driver.snapshot({}, {}).heads.items()
    ((_, (id, more)),) = driven.read(name, start, end)
    assert (id, json.loads(more)) == (1, {"x": 2, "_file_path": path})


class Orders(FilesSpout):
    outputs = ["id long"]


class Lake(ObjectsSpout):
    outputs = ["id long"]


class Api(HttpSpout):
    outputs = ["id long"]


@pytest.mark.parametrize("spout", [Orders, Lake, Api])
def test_the_field_is_added_to_the_outputs_of_a_class(spout):
    assert spout.spec(rescued="more").streams == Stream.all_of(["id long", "more string"], given_by="it")
    assert spout.outputs == ["id long"]


@pytest.mark.parametrize("spout", [FilesSpout, ObjectsSpout, HttpSpout])
@pytest.mark.parametrize("streams", [Stream(fields=["id long"]), [Stream(fields=["id long"]), "x string"]])
def test_the_field_cannot_be_added_to_streams(spout, streams):
    class Streams(spout):
        outputs = streams

    with pytest.raises(OptionError, match="Streams declares Streams: end the fields .* with 'more string'"):
        Streams.spec(rescued="more")


@pytest.mark.parametrize("spout", SPOUTS)
def test_without_fields_there_is_nothing_to_rescue(tmp_path, spout):
    with pytest.raises(OptionError, match="'ndjson' needs the fields"):
        Driven(spout.spec(path=tmp_path, format="ndjson", rescued="more"))


def test_a_class_with_outputs_rescues(tmp_path):
    path = write(tmp_path, "a.json", b'{"id": 1, "x": 2}\n')
    for spout in (Orders, Lake):
        driven = Driven(spout.spec(path=path if spout is Orders else tmp_path, format="ndjson", rescued="more"))
        ((name, (start, end)),) = driven.driver.snapshot({}, {}).heads.items()
        ((id, more),) = by_rows(driven, name, start, end)
        assert (id, json.loads(more)) == (1, {"x": 2, "_file_path": path})


@pytest.mark.parametrize("spout", SPOUTS)
@pytest.mark.parametrize(
    ("format", "fields", "said"),
    [
        ("lines", ["line string", "_rescued_data string"], "any text fits format 'lines'"),
        ("ndjson", ["id long"], "names the last field"),
        ("csv", ["_rescued_data string", "id long"], "names the last field"),
        ("parquet", ["id long", "_rescued_data binary"], "names the last field"),
        ("parquet", ["id long", "_rescued_data string not null"], "names the last field"),
    ],
)
def test_what_cannot_be_rescued_is_refused(tmp_path, spout, format, fields, said):
    spec = spout.spec(path=tmp_path, format=format, fields=fields, config={"rescuedDataColumn": NAME})
    with pytest.raises(OptionError, match=said):
        Driven(spec)


def test_dead_letters_have_nothing_to_rescue(tmp_path):
    with pytest.raises(OptionError, match="rescuedDataColumn"):
        Driven(DeadLetterSpout.spec(path=tmp_path, fields=["id long"], config={"rescuedDataColumn": NAME}))


TEXT_OR_LONG = ["long", "string"]
POINT = {"type": "record", "name": "p", "fields": [{"name": "x", "type": TEXT_OR_LONG}]}


@pytest.mark.parametrize(
    ("avro_type", "ddl", "values", "kept", "left"),
    [
        ("int", "long", [1, 2], [1, 2], [None, None]),
        (
            {"type": "map", "values": TEXT_OR_LONG},
            "map<string, int>",
            [{"a": 1}, {"b": "x"}, {"c": 2}],
            [[("a", 1)], None, [("c", 2)]],
            [None, {"b": "x"}, None],
        ),
        (POINT, "struct<x: long>", [{"x": 1}, {"x": "u"}], [{"x": 1}, {"x": None}], [None, {"x": "u"}]),
        (POINT, "struct<x: long not null>", [{"x": 1}, {"x": "u"}], [{"x": 1}, None], [None, {"x": "u"}]),
        (POINT, "struct<y: long>", [{"x": 1}, {"x": "u"}], [{"y": None}, {"y": None}], [{"x": 1}, {"x": "u"}]),
        (["long", "double"], "string", [1, 2.5], [None, None], [1, 2.5]),
        (["string", "bytes"], "string", ["a", b"b"], ["a", None], [None, "Yg=="]),
        (["boolean", "long"], "long", [True, 1], [None, 1], [True, None]),
        ({"type": "array", "items": TEXT_OR_LONG}, "array<long>", [[1], ["x"]], [[1], None], [None, ["x"]]),
        (
            ["long", {"type": "map", "values": "long"}],
            "map<string, long>",
            [1, {"b": 2}],
            [None, [("b", 2)]],
            [1, None],
        ),
    ],
)
def test_a_value_of_avro_is_judged_by_itself(tmp_path, avro_type, ddl, values, kept, left):
    """Also what is rescued is the record's, and not what an array of all values would make of it."""
    path = avro(tmp_path, {"v": avro_type}, [{"v": value} for value in values])
    rest = [None if each is None else {"_file_path": path, "v": each} for each in left]
    found = read(tmp_path, "avro", [f"v {ddl}"], ObjectsSpout)
    assert repr(found) == repr(list(zip(kept, rest, strict=True)))


def test_undeclared_maps_of_avro_have_only_their_own_keys(tmp_path):
    path = avro(tmp_path, {"m": {"type": "map", "values": "int"}}, [{"m": {"a": 1}}, {"m": {"b": 2}}])
    rest = [{"m": {"a": 1}, "_file_path": path}, {"m": {"b": 2}, "_file_path": path}]
    assert read(tmp_path, "avro", ["id int"], ObjectsSpout) == [(None, each) for each in rest]


@pytest.mark.parametrize("rescued", [None, NAME])
def test_a_record_of_avro_that_does_not_fit_is_told_with_its_value(tmp_path, caplog, rescued):
    avro(tmp_path, {"id": TEXT_OR_LONG}, [{"id": 1}, {"id": "x"}, {"id": 3}])
    config = {"files.malformed": "skip"}
    fields = ["id long not null"]
    driven = Driven(ObjectsSpout.spec(path=tmp_path, format="avro", fields=fields, rescued=rescued, config=config))
    ((name, (start, end)),) = driven.driver.snapshot({}, {}).heads.items()
    assert [row[0] for row in by_rows(driven, name, start, end)] == [1, 3]
    logged = "\n".join(caplog.messages)  # .text has the form of Spark's handlers if they were set before
    assert "row 1 of its row group: field 'id': x of type string does not fit bigint not null" in logged
    assert '{"id": "x"}' in logged


def test_the_reason_of_a_needed_value_is_the_same_with_and_without_rescue(tmp_path):
    path = write(tmp_path, "a.json", b'{"id": "x"}\n')
    with_it = refusal(path, "ndjson", ["id long not null"])
    driven = Driven(FilesSpout.spec(path=path, format="ndjson", fields=["id long not null"]))
    ((name, (start, end)),) = driven.driver.snapshot({}, {}).heads.items()
    with pytest.raises((ComponentFailed, SchemaError)) as raised:
        by_rows(driven, name, start, end)
    assert "Expected `int" in with_it
    assert with_it == str(raised.value.__cause__ or raised.value)


@pytest.mark.parametrize(
    ("format", "data"),
    [
        ("ndjson", b'{"id": 1, "x": 2}\n{"id": 2}\n'),
        ("csv", b"id,x\n1,2\n2,3\n"),
        ("parquet", pa.table({"id": [1, 2], "x": [2, None]})),
    ],
)
def test_a_replay_after_a_rename_gives_the_same_text(tmp_path, format, data):
    path = Path(write(tmp_path, "app.1", data))
    fields, config = ["id int"], {"files.header": format == "csv"}
    driven = Driven(FilesSpout.spec(path=tmp_path, format=format, fields=fields, rescued=NAME, config=config))
    ((name, (start, end)),) = driven.driver.snapshot({}, {}).heads.items()
    before = by_rows(driven, name, start, end)
    path.rename(tmp_path / "app.2")
    assert json.loads(before[0][1])["_file_path"] == str(path)
    assert by_rows(driven, name, start, end) == by_columns(driven, name, start, end) == before
