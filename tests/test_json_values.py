"""JSON that is nested deeper than Python's stack is refused as any other text that is no JSON."""

import json

import pytest

from pystorm_source.json_values import TOO_DEEP, json_copy, json_of


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
