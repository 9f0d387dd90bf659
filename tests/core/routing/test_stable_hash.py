"""The hash of fields groupings: by content, alike in every process, and the same for ever."""

import datetime as dt
import decimal
import enum
import json
import os
import subprocess
import sys
import uuid
from collections import Counter, OrderedDict
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cython_core.routing.route import hash_of
from tests.sizes import sized

D = decimal.Decimal
UTC = dt.UTC


class Colour(enum.Enum):
    RED = 1
    BLUE = "RED"


class Level(enum.IntEnum):
    LOW = 1


class Name(enum.StrEnum):
    STORM = "storm"


@dataclass
class Point:
    x: int
    y: list


# What was once hashed must go to the same task in every later version: these numbers never change.
GOLDEN = [
    ("", 0xE13745E0CB184D87),
    ("storm", 0x3B3C6D64DC1429DB),
    ("größe", 0x4B07655C89DDFB4F),
    ("\ud800", 0xC75528B7D9992629),
    (0, 0x9CA066F1A4AB2EEA),
    (1, 0x25B775FAECA8F520),
    (-1, 0x3CD617BBBCC39640),
    (2**63 - 1, 0xF2A9E4C522CF7451),
    (-(2**63), 0x11C0B7745EB88D61),
    (2**64 + 5, 0xB92B2F6DD151B107),
    (0.1, 0x15EEC44570CE82FD),
    (-2.5, 0x37D53211A66F500D),
    (float("inf"), 0xCFD6BC493B5DDA0A),
    (float("nan"), 0x3ABF2A20650683E7),
    (None, 0xB456BCFC34C2CB2C),
    (b"storm", 0x9032F3A17FF78AD9),
    (b"", 0xA7DBED7426EA36C9),
    ((), 0x0000000000000007),
    (("a", 1, None), 0x7668BC78DDCC9500),
    ([1, [2, [3]]], 0x4AA2DDAEC029031A),
    ({"a": 1, "b": [2]}, 0xA3EBA3E12DC3F79D),
    ({1, 2, 3}, 0x9DDB7CDFCE8A3322),
    (D("0.1"), 0x39F9CB841BFDCCED),
    (Fraction(1, 3), 0x9602AB2EE789BE5F),
    (dt.date(2024, 2, 29), 0xCC209E159B0CAF70),
    (dt.datetime(2024, 2, 29, 12, 30, 1, 5), 0x5236DA3FE0114B23),
    (dt.datetime(2024, 2, 29, 12, tzinfo=UTC), 0x095226995B71569D),
    (dt.time(12, 30), 0xB1F364A7C83F46E1),
    (dt.timedelta(days=1, seconds=2), 0xE7810A729E315119),
    (uuid.UUID(int=5), 0x9A043697CDF00182),
    (Colour.RED, 0x139BAF438249B66E),
    (Point(1, [2]), 0x5D7AE20F3A25E1A5),
]


@pytest.mark.parametrize(("value", "expected"), GOLDEN, ids=lambda value: ascii(value)[:40])
def test_golden(value, expected):
    assert hash_of(value) == expected


M64 = 2**64 - 1


def murmur64a(data: bytes, seed: int) -> int:
    """Austin Appleby's MurmurHash64A, written down from its definition: what texts and bytes must give anywhere."""
    m = 0xC6A4A7935BD1E995
    h = seed ^ (len(data) * m & M64)
    for at in range(0, len(data) & ~7, 8):
        k = int.from_bytes(data[at : at + 8], "little") * m & M64
        k = (k ^ k >> 47) * m & M64
        h = (h ^ k) * m & M64
    if len(data) & 7:
        h = (h ^ int.from_bytes(data[len(data) & ~7 :], "little")) * m & M64
    h = (h ^ h >> 47) * m & M64
    return h ^ h >> 47


@given(st.text())
def test_text_is_hashed_as_its_utf8(text):
    assert hash_of(text) == murmur64a(text.encode(), 5)


@given(st.binary(max_size=100))
def test_bytes_are_hashed_as_they_are(data):
    assert hash_of(data) == murmur64a(data, 6)


PROGRAM = """
import sys; sys.path.insert(0, {root!r})
from tests.core.routing.test_stable_hash import GOLDEN, hash_of
import json; print(json.dumps([hash_of(value) for value, _ in GOLDEN] + [hash_of({{str(n) for n in range(50)}})]))
"""


def test_alike_whatever_the_seed_of_the_process():
    from pathlib import Path

    root = str(Path(__file__).resolve().parents[3])
    seen = set()
    for seed in ("0", "1", "424242", "random"):
        ended = subprocess.run(
            [sys.executable, "-c", PROGRAM.format(root=root)],
            capture_output=True,
            text=True,
            timeout=60,
            env=os.environ | {"PYTHONHASHSEED": seed},
        )
        assert ended.returncode == 0, ended.stderr
        seen.add(ended.stdout)
    assert len(seen) == 1
    assert json.loads(seen.pop())[:-1] == [hash_of(value) for value, _ in GOLDEN]


EQUAL = [
    [
        1,
        1.0,
        True,
        D(1),
        D("1.00"),
        Fraction(1),
        np.int64(1),
        np.int8(1),
        np.uint64(1),
        np.float32(1),
        np.bool_(True),
        Level.LOW,
    ],
    [0, -0.0, False, D("-0"), np.float64(-0.0)],
    [0.5, D("0.5"), Fraction(1, 2), np.float32(0.5)],
    [0.1, np.float64(0.1)],
    [D("0.1"), Fraction(1, 10)],
    [-1, -1.0, D(-1), np.int16(-1)],
    [2**63, float(2**63), D(2**63), Fraction(2**63), np.uint64(2**63)],
    [-(2**63), float(-(2**63)), D(-(2**63)), np.int64(-(2**63))],
    [10**300, D("1E+300"), Fraction(10**300)],
    [float("inf"), D("Infinity"), np.float64("inf")],
    [float("-inf"), D("-Infinity")],
    [float("nan"), D("nan"), D("snan"), np.float32("nan")],
    ["storm", np.str_("storm"), Name.STORM],
    [b"storm", bytearray(b"storm"), memoryview(b"storm"), np.bytes_(b"storm")],
    [(1, 2), [1, 2], np.array([1, 2]), (1.0, D(2))],
    [{"a": 1, "b": 2}, {"b": 2.0, "a": True}, OrderedDict(b=2, a=1), Counter(a=1, b=2)],
    [{1, 2}, frozenset([2, 1]), {2.0, 1}],
    [dt.datetime(2024, 1, 1, 12, tzinfo=UTC), dt.datetime(2024, 1, 1, 13, tzinfo=dt.timezone(dt.timedelta(hours=1)))],
    [dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1)))],
    [dt.time(12, tzinfo=UTC), dt.time(13, tzinfo=dt.timezone(dt.timedelta(hours=1)))],
    [dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 1, fold=1), np.datetime64("2024-01-01T00:00:00", "us")],
    [dt.date(2024, 1, 1), np.datetime64("2024-01-01")],
]


@pytest.mark.parametrize("alike", EQUAL, ids=lambda alike: repr(alike[0])[:40])
def test_equal_values_are_one_key(alike):
    assert {hash_of(value) for value in alike} == {hash_of(alike[0])}


def test_kinds_are_kept_apart():
    apart = [
        "1", b"1", 1, -1, 0, 1.5, None, [1], [[1]], {1}, {1: 1}, (), "", b"", {}, frozenset(), "None", [None], [""],
        float("nan"), float("inf"), "nan", "inf", Colour.RED, Colour.BLUE, "Colour.RED", dt.date(2024, 1, 1),
        dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 1, tzinfo=UTC), "2024-01-01", dt.time(1), dt.timedelta(hours=1),
        2**64, -(2**64), "18446744073709551616", D("0.1"), 0.1, ["a", "b"], ["ab"], ["b", "a"], "a\0b", "a",
    ]  # fmt: skip
    hashes = [hash_of(value) for value in apart]
    assert len(set(hashes)) == len(apart), [v for v in apart if hashes.count(hash_of(v)) > 1]


numbers = st.one_of(
    st.integers(), st.floats(allow_nan=False), st.fractions(), st.decimals(allow_nan=False), st.booleans(),
    st.integers(-(2**70), 2**70).map(float), st.integers(-5, 5).map(Fraction),
)  # fmt: skip


@settings(max_examples=sized(300), deadline=None)
@given(numbers, numbers)
def test_numbers_that_are_equal_hash_alike(one, other):
    if one == other:
        assert hash_of(one) == hash_of(other)
    if isinstance(one, (int, float)):
        assert hash_of(one) == hash_of(D(one))
        if abs(one) != float("inf"):
            assert hash_of(one) == hash_of(Fraction(one))


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
    max_leaves=10,
)


@settings(max_examples=sized(200), deadline=None)
@given(plain)
def test_anything_from_json_has_a_hash_that_a_copy_shares(value):
    import copy

    assert hash_of(value) == hash_of(copy.deepcopy(value))
    assert 0 <= hash_of(value) < 2**64


@pytest.mark.parametrize("targets", [2, 3, 4, 7, 8, 16, 50])
@pytest.mark.parametrize(
    "keys",
    [
        [f"user-{n}" for n in range(20_000)],
        list(range(20_000)),
        [n * 1024 for n in range(-10_000, 10_000)],
        [n / 8 for n in range(20_000)],
        [(n % 10, str(n // 10)) for n in range(20_000)],
        [n.to_bytes(4, "little") for n in range(20_000)],
        [dt.datetime(2024, 1, 1) + dt.timedelta(minutes=n) for n in range(20_000)],
        [2**64 + 2**40 * n for n in range(20_000)],
    ],
    ids=["words", "ints", "aligned", "floats", "pairs", "bytes", "times", "big"],
)
def test_keys_are_spread_evenly(keys, targets):
    """Chi squared of the tasks' shares stays below what chance exceeds once in some hundred thousand times."""
    shares = Counter(hash_of(key) % targets for key in keys)
    expected = len(keys) / targets
    chi = sum((shares[task] - expected) ** 2 / expected for task in range(targets))
    assert chi < targets - 1 + 6 * (2 * (targets - 1)) ** 0.5 + 12, shares


class Opaque:
    pass


@pytest.mark.parametrize("value", [Opaque(), object(), Opaque, [1, Opaque()], {"a": {Opaque}}, lambda: 1, iter([]), 1j])
def test_what_has_no_known_content_is_refused_with_a_remedy(value):
    with pytest.raises(TypeError, match=r"cannot hash a value of type .*: group by text, numbers.*Given: "):
        hash_of(value)


def test_depth_is_bounded_by_an_error_not_by_the_stack():
    endless = []
    endless.append(endless)
    with pytest.raises(RecursionError):
        hash_of(endless)
    mapping = {}
    mapping["self"] = [mapping]
    with pytest.raises(RecursionError):
        hash_of(mapping)
    deep = nested = []
    for _ in range(200_000):
        nested.append([])
        nested = nested[0]
    with pytest.raises(RecursionError):
        hash_of(deep)
    while deep:  # taken apart by hand: the interpreter would recurse
        deep = deep.pop()
    assert hash_of([[[[["still"]]]]]) == hash_of([[[[["still"]]]]])


def test_the_deepest_value_needs_no_more_stack_than_the_smallest_thread_has():
    """Python's own bound of 10,000 (3.12, 3.13) overflows it; musl gives a thread 1 MB of stack."""
    program = """
import sys, threading
from cython_core.routing.route import hash_of, java_hash

sys.setrecursionlimit(100_000)
threading.stack_size(1 << 20)
for hashed in (hash_of, java_hash):
    deepest = value = []
    for _ in range(999):
        value.append([])
        value = value[0]
    hashed(deepest)
    for too_deep in ([deepest], [[[deepest]]]):
        try:
            hashed(too_deep)
        except RecursionError as error:
            assert "nested at most 1,000 deep" in str(error), error
        else:
            raise SystemExit("no bound")

def in_a_thread():
    hash_of(deepest)
    print("hashed")

thread = threading.Thread(target=in_a_thread)
thread.start()
thread.join()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "hashed\n"), done.stderr


@pytest.mark.timeout(10)
@pytest.mark.parametrize("value", [D("1E+999999"), D("1E-999999"), D("-7E+500000"), Fraction(1, 7**5000)], ids=str)
def test_huge_exponents_cost_nothing(value):
    assert hash_of(value) == hash_of(value + 0)
