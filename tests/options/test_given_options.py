"""The options that a record file keeps: any value becomes JSON, secrets and long texts do not."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from pystorm_source.options import SourceOptions, parse
from pystorm_source.options.given_options import MOST_OPTIONS, given_options
from pystorm_source.records.record_file import Begin, parsed
from pystorm_source.types.json_values import utf8_json

_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.builds(object),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.text(max_size=5), _values, max_size=5))
@settings(max_examples=60, deadline=None)
def test_any_value_can_be_written_and_read_again(config):
    begin = Begin(topology="T", options=given_options(config.items()))
    assert set(parsed(utf8_json(begin)).options) == set(begin.options)


def test_secrets_and_defaults_are_left_out():
    options = parse(SourceOptions, {"stream": "a", "config": json.dumps({"url": "redis://u:pw@h", "api_key": "x1y2"})})
    found = given_options({"url": "redis://u:pw@h", "api_key": "x1y2"}.items(), options)
    assert found == {"url": "redis://h", "api_key": "(redacted)", "stream": "a"}


def test_a_long_text_and_very_many_keys_are_cut():
    found = given_options([("text", "x" * 10_000), *((f"k{n:04}", n) for n in range(1000))])
    assert len(found) == MOST_OPTIONS
    assert len(given_options([("text", "x" * 10_000)])["text"]) < 600
