"""Values as JSON: every value gives a text that JSON reads back."""

import datetime
import decimal
import enum
import json
import uuid

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pystorm_source.types.json_text import json_text

pytestmark = pytest.mark.inline  # nothing here is scheduled


class Colour(enum.Enum):
    RED = b"r"


class Speechless:
    def __str__(self):
        raise RuntimeError("no words")


class Liar(int):
    def __int__(self):
        raise RuntimeError("no number")

    __str__ = __repr__ = __int__


ROUND = []
ROUND.append(ROUND)


@pytest.mark.parametrize(
    ("value", "read"),
    [
        (None, None),
        (True, True),
        (2**80, 2**80),
        (1.5, 1.5),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        ("é\ud800", "é\ud800"),
        (b"\xff\x00", "/wA="),
        (memoryview(b"ab"), "YWI="),
        (datetime.datetime(2026, 1, 2, 3, 4, 5, 6, datetime.UTC), "2026-01-02T03:04:05.000006+00:00"),
        (datetime.date(2026, 1, 2), "2026-01-02"),
        (datetime.time(3, 4), "03:04:00"),
        (datetime.timedelta(days=1), "1 day, 0:00:00"),
        (decimal.Decimal("1.10"), "1.10"),
        (uuid.UUID(int=3), "00000000-0000-0000-0000-000000000003"),
        (Colour.RED, "cg=="),
        ({1: {2}, (1, 2): None, None: b"a", b"k": ()}, {"1": [2], "(1, 2)": None, "null": "YQ==", "aw==": []}),
        (np.int8(3), 3),
        (np.float64("inf"), "Infinity"),
        (np.bool_(True), True),
        (np.arange(4).reshape(2, 2), [[0, 1], [2, 3]]),
        (np.array("x"), "x"),
        (np.datetime64("2026-01-02T03:04:05.000000007"), "2026-01-02T03:04:05.000000007"),
        (np.array(["2026-01-02"], "M8[D]"), ["2026-01-02"]),
        (np.array([(1, 2.5)], [("a", int), ("b", float)]), [[1, 2.5]]),
        (Speechless(), "<Speechless that does not print>"),
        (Liar(3), "<Liar that does not print>"),
        (10**5000, "<int that does not print>"),
        ([1, Speechless()], [1, "<Speechless that does not print>"]),
        (complex(1, 2), "(1+2j)"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_becomes_of_it(value, read):
    assert json.loads(json_text([value])) == [read]


def test_what_lies_in_a_circle_ends():
    assert json_text([ROUND]).count("[") > 100


def strict(text):
    return json.loads(text, parse_constant=pytest.fail)


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters())
    | st.binary()
    | st.decimals()
    | st.datetimes(timezones=st.none() | st.timezones())
    | st.timedeltas()
    | st.complex_numbers()
    | st.uuids(),
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(st.one_of(st.none(), st.integers(), st.text(), st.binary(), st.dates()), inner)
        | st.frozensets(st.integers() | st.binary())
    ),
    max_leaves=20,
)


@settings(deadline=None)
@given(st.lists(ANYTHING, max_size=5))
def test_any_value_gives_json_of_as_many_values(values):
    text = json_text(values)
    assert text.isascii()
    assert len(strict(text)) == len(values)
