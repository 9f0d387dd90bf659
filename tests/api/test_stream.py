"""Declared streams: names, types, and what is refused."""

import pickle

import pytest

from pystorm_source.api import Stream
from pystorm_source.errors import UsageError
from pystorm_source.errors.conditions import CONDITIONS


def test_nothing_given():
    stream = Stream()
    assert (stream.fields, stream.types, stream.name, stream.direct) == ((), (), "default", False)
    assert stream.typed  # vacuously
    assert Stream(fields=None) == stream


@pytest.mark.parametrize(
    ("field", "name", "ddl"),
    [
        ("word", "word", None),
        ("word string", "word", "string"),
        ("  word   string  ", "word", "string"),
        ("word\tstring", "word", "string"),
        ("word: string", "word", "string"),
        ("word:string", "word", "string"),
        ("word :string", "word", "string"),
        ("price decimal(10, 2)", "price", "decimal(10, 2)"),
        ("m map<string, array<int>>", "m", "map<string, array<int>>"),
        ("s struct<a: int, b: string>", "s", "struct<a: int, b: string>"),
        ("s:struct<a:int>", "s", "struct<a:int>"),
        ("n int NOT NULL", "n", "int NOT NULL"),
        ("größe double", "größe", "double"),
    ],
)
def test_a_field_is_a_name_or_a_name_and_a_type(field, name, ddl):
    stream = Stream(fields=[field])
    assert (stream.fields, stream.types, stream.typed) == ((name,), (ddl,), ddl is not None)


@pytest.mark.parametrize("fields", [["a", "b int"], ("a", "b int")])
def test_lists_and_tuples(fields):
    stream = Stream(fields)
    assert stream.fields == ("a", "b")
    assert stream.types == (None, "int")
    assert not stream.typed


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"fields": "word"}, TypeError),
        ({"fields": 5}, TypeError),
        ({"fields": {"word"}}, TypeError),
        ({"fields": ["a", 1]}, TypeError),
        ({"fields": [None]}, TypeError),
        ({"fields": [b"a"]}, TypeError),
        ({"name": 5}, TypeError),
        ({"name": None}, TypeError),
        ({"direct": 1}, TypeError),
        ({"direct": None}, TypeError),
        ({"fields": [""]}, ValueError),
        ({"fields": ["  "]}, ValueError),
        ({"fields": [": int"]}, ValueError),
        ({"fields": [":int"]}, ValueError),
        ({"fields": ["a", "b", "a"]}, ValueError),
        ({"fields": ["a int", "a string"]}, ValueError),
    ],
)
def test_refused(arguments, error):
    with pytest.raises(error, match="Given: ") as caught:
        Stream(**arguments)
    assert isinstance(caught.value, error) and isinstance(caught.value, UsageError)
    assert caught.value.code in CONDITIONS


def test_equal_by_value_frozen_and_picklable():
    one, same = Stream(["a int"], name="s"), Stream(("a int",), name="s")
    assert one == same
    assert hash(one) == hash(same)
    assert one != Stream(["a long"], name="s")
    assert pickle.loads(pickle.dumps(one)) == one
    with pytest.raises(AttributeError):
        one.name = "other"


def test_outputs_of_a_component():
    assert Stream.all_of(None, "X") == ()
    assert Stream.all_of([], "X") == ()
    assert Stream.all_of(("a", "b int"), "X") == (Stream(["a", "b int"]),)
    named = Stream(["c"], name="named")
    assert Stream.all_of([named, "a", "b"], "X") == (Stream(["a", "b"]), named)
    assert Stream.all_of([Stream(["c"])], "X") == (Stream(["c"]),)


@pytest.mark.parametrize(
    ("outputs", "error"),
    [
        ("word", TypeError),
        (5, TypeError),
        ({"a"}, TypeError),
        (["a", 5], TypeError),
        ([None], TypeError),
        ([["a"]], TypeError),
        ([Stream(["a"], name="s"), Stream(["b"], name="s")], ValueError),
        (["a", Stream(["b"])], ValueError),
    ],
)
def test_refused_outputs_name_the_component(outputs, error):
    with pytest.raises(error, match="MySpout.*Given: "):
        Stream.all_of(outputs, "MySpout")
