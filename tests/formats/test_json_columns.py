"""JSON documents as Arrow columns at once: the same values, and the same reasons, as one by one."""

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pystorm_source.formats.decoding import decoder_of
from pystorm_source.formats.options import DecodingOptions
from pystorm_source.options import parse
from tests.formats.decoded import agreed
from tests.formats.odd_values import JSON_TYPES, VALUES

NAMES = ["f0", "f1", "f2"]
FRAMED = b"\0\0\0\0\7"


def decoder(fields):
    return decoder_of(parse(DecodingOptions, {"value.format": "json", "value.schema": ", ".join(fields)}), "value")


@st.composite
def topics(draw):
    types = draw(st.lists(st.sampled_from(JSON_TYPES), min_size=1, max_size=3))
    fields = [
        f"{name} {ddl}" + draw(st.sampled_from(["", "", "", " not null"]))
        for name, ddl in zip(NAMES, types, strict=False)
    ]
    value = st.sampled_from(draw(st.lists(st.sampled_from(VALUES), min_size=1, max_size=4)))
    names = [*NAMES[: len(types)], "f0", "other", r"\u00660"]
    member = st.builds(lambda name, value: f'"{name}": {value}', st.sampled_from(names), value)
    space = st.sampled_from(["", "", " ", "\n", "\r\n"])
    document = st.builds(
        lambda members, space: "{" + f",{space}".join(members) + "}", st.lists(member, max_size=4), space
    )
    odd = st.sampled_from(
        [None, b"", b" ", b"null", b"1", b"[]", b'{"f0": 1}{"f0": 2}', b'{"f0": 1}\n{"f0": 2}', b"{}\xff"]
    )
    framed = st.sampled_from([b"", b"", b"", FRAMED])
    data = st.lists(st.builds(lambda frame, text: frame + text.encode(), framed, document) | odd, max_size=6)
    return fields, draw(data)


@given(topics())
@settings(max_examples=3000 if os.environ.get("PYSTORM_DEEP") else 200, deadline=None)
def test_documents_are_the_same_at_once_and_one_by_one(topic):
    fields, data = topic
    made = decoder(fields)
    assert made.at_once
    agreed(made, data)


USUAL = ["id int not null", "name string", "at timestamp", "day date", "price decimal(6,2)", "rate float"]
USUAL += [
    "lines array<struct<at: timestamp_ntz, price: decimal(6,2)>>",
    "inner struct<day: date, more: struct<x: double>>",
]
DOCUMENTS = [
    b'{"id": 1, "name": "\xc3\xa9", "at": "2024-02-29T12:00:00Z", "day": "2024-02-29", "price": 1.5, "rate": 0.1}',
    b'{"id": 2, "lines": [{"at": "2024-02-29T12:00:00", "price": "12.34"}, null, {}], "inner": {"day": null}}',
    b'{"id": 3, "inner": {"day": "2024-02-29", "more": {"x": 1e40}}, "lines": []}',
    b'{\n "id": 4\n}',
]


@pytest.mark.parametrize("frame", [b"", FRAMED])
def test_no_usual_document_is_read_by_itself(monkeypatch, frame):
    made = decoder(USUAL)
    data = [None, *(frame + each for each in DOCUMENTS), None]
    expected, bad = agreed(made, data)
    assert not bad and expected[1]["price"] is not None and expected[2]["lines"][0]["at"] is not None
    monkeypatch.setattr(made, "_value", None)
    found = made.array(data, bad)
    assert [None if each is None else each["id"] for each in found.to_pylist()] == [None, 1, 2, 3, 4, None]
    assert not bad
