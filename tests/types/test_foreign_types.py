"""Types as other systems spell them: the remedy is Spark's spelling, which is read."""

import time

import pyarrow as pa
import pytest

from pystorm_source.errors import SchemaError
from pystorm_source.types.arrow import field_type
from pystorm_source.types.foreign_types import SPARKS


def refused(text):
    with pytest.raises(SchemaError) as caught:
        field_type(text, "field 'n'")
    error = caught.value
    assert error.code == "PYSTORM_INVALID_TYPE"
    assert error.message.startswith("the type of field 'n' cannot be read: ")
    assert error.message.endswith(f". Given: {text!r}")
    assert "\n" not in error.message
    return error.message


@pytest.mark.parametrize("name", sorted(SPARKS))
def test_a_name_of_arrow_pandas_or_python_gets_sparks_name(name):
    assert f"write {SPARKS[name]!r}" in refused(name)
    field_type(SPARKS[name], "field 'n'")


@pytest.mark.parametrize("name", ["int8", "int16", "int32", "int64", "float32", "float64"])
def test_the_proposed_type_is_that_of_the_same_width(name):
    assert field_type(SPARKS[name], "field 'n'") == getattr(pa, name)()


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("Int64", "write 'long'"),
        ("np.int64", "write 'long'"),
        ("array<int64>", "write 'long'"),
        ("struct<a: float64>", "write 'double'"),
        ("datetime64[ns]", "write 'timestamp'"),
        ("int64[pyarrow]", "write 'long'"),
        ("timestamp[us, tz=UTC]", "write 'timestamp'"),
        ("list[str]", "write 'array<string>'"),
    ],
)
def test_its_remedy_whatever_stands_around_it(text, remedy):
    assert remedy in refused(text)


@pytest.mark.parametrize(
    "text", ["int | null", "int|None", "null | int", "int or null", "Optional[int]", "int?", "int null", "nullable int"]
)
def test_a_field_may_be_null_already(text):
    said = refused(text)
    assert "every field may be null already: write 'int'; or 'int not null' if it never is" in said


def test_a_foreign_name_that_may_be_null():
    assert "write 'long'" in refused("int64 | None")


def test_a_text_without_end_is_refused_at_once():
    began = time.monotonic()
    with pytest.raises(SchemaError):
        field_type("int |" + " " * 1_000_000 + "|", "field 'n'")
    assert time.monotonic() - began < 30
