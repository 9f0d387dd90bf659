"""JSON that is nested deeper than Python's stack is refused as any other text that is no JSON."""

import json

import msgspec
import pytest

from pystorm_source.types.json_values import TOO_DEEP, JsonDecoder, json_copy, json_of, utf8_json


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "[1", "", "x"])
def test_what_cannot_be_read_is_a_value_error(text):
    with pytest.raises(json.JSONDecodeError):
        json_of(text)


def test_what_can_be_read_is_as_json_says():
    assert json_of('{"a": [1, null, "x"]}') == {"a": [1, None, "x"]}


def test_values_come_back_as_json_has_them():
    assert json_copy({"a": (1, 2), 3: None}) == {"a": [1, 2], "3": None}


def test_values_that_json_cannot_hold():
    deep: list = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ValueError, match=TOO_DEEP):
        json_copy(deep)
    with pytest.raises(TypeError):
        json_copy({"a": object()})


class Line(msgspec.Struct, omit_defaults=True, rename="camel", tag_field="kind", tag="line"):
    text: str
    by_name: dict[str, tuple[str, ...]] = {}


def test_lone_surrogates_become_a_character_of_utf8_and_nothing_else_changes():
    assert utf8_json(Line("Sträßchen")) == '{"kind":"line","text":"Sträßchen"}'.encode()
    odd = utf8_json(Line("a\udcff", {"\ud800b": ("ä", "\udfff")}))
    assert odd == '{"kind":"line","text":"a\ufffd","byName":{"\ufffdb":["ä","\ufffd"]}}'.encode()
    assert JsonDecoder(Line).decode(odd).by_name == {"\ufffdb": ("ä", "\ufffd")}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b'{"kind":"line","text":"\xff"}',
        b'{"kind":"line","text":"","odd":' + b"[" * 1_000_000 + b"]" * 1_000_000 + b"}",
        b'{"kind":"line","text":"\\ud800"}',
        b'{"kind":"line","text":NaN}',
        b'{"kind":"line"}',
    ],
    ids=["nothing", "not UTF-8", "deep", "lone surrogate", "NaN", "no text"],
)
def test_bytes_from_outside_that_cannot_be_read_are_a_value_error(data):
    with pytest.raises(msgspec.DecodeError):
        JsonDecoder(Line).decode(data)
