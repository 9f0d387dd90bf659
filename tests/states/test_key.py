"""Keys of map states and their texts."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from uuid import UUID

import hypothesis
import msgspec
from hypothesis import settings
from hypothesis import strategies as st

from pystorm_source.states.key import key_text, key_texts
from tests.sizes import sized

PRINTED = [
    *(date(2026, 3, 1), datetime(2026, 3, 1, 12), datetime(2026, 3, 1, 12, tzinfo=UTC)),
    *(Decimal("1.5"), Decimal(1), UUID(int=7), UUID(int=7 << 124), b"ann", 1, 1.5, True, None),
]
PARTS = [*PRINTED, *map(str, PRINTED), "ann", "", "{}", '{"date":"2026-03-01"}', '["ann"]', "true", "null", "YW5u"]
PARTS += [json.loads(msgspec.json.encode(each)) for each in PRINTED]
KEY_PARTS = st.one_of(
    st.sampled_from(PARTS),
    st.text(max_size=3),
    st.binary(max_size=3),
    st.decimals(allow_nan=False, allow_infinity=False, places=1, min_value=-99, max_value=99),
    st.integers(-99, 99),
    st.dates(date(2026, 3, 1), date(2026, 3, 2)),
)


def identity(key):
    """What makes a key another one: values and their types. -0.0 is 0.0."""
    if isinstance(key, tuple):
        return tuple(map(identity, key))
    return type(key), repr(key + 0.0 if isinstance(key, float) else key)


@settings(max_examples=sized(200))
@hypothesis.given(keys=st.lists(st.one_of(KEY_PARTS, st.lists(KEY_PARTS, max_size=2).map(tuple)), max_size=30))
def test_two_keys_never_share_a_text(keys):
    keys += [*PARTS, *((part,) for part in PARTS)]
    assert len(set(key_texts(keys))) == len(set(map(identity, keys)))


def test_keys_that_are_equal_have_one_text():
    class Name(str):
        pass

    for one, other in [(0.0, -0.0), ((0.0,), (-0.0,)), ("ann", Name("ann")), (("12",), (Name("12"),))]:
        assert key_text(one) == key_text(other)
