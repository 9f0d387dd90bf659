"""The hash that keeps Storm's assignment of keys to tasks, against a real JVM."""

import decimal
import enum
import json
import os
import random
import subprocess
import sys
import uuid
from decimal import Decimal
from pathlib import Path

import pyspark
import pytest

from cython_core.routing.route import java_deep_hash, java_hash
from pystorm_source.spark.java import find_java

ORACLE = Path(__file__).with_name("HashOracle.java")
SEED = 20_240_217
EDGES = [
    *(sign * (1 << bits) + near for bits in (0, 7, 15, 31, 32, 33, 53, 62, 63, 64, 95, 96, 127, 200) for sign in (1, -1)
      for near in (-1, 0, 1)),
    *(0.0, -0.0, 1.0, -1.0, 0.1, 1e300, -1e-300, 5e-324, 2.0**53, float("inf"), float("-inf"), float("nan"), 1.5),
    *("", "a", "storm", "ÿ", "Ā", "Straße", "日本語", "😀", "a😀b", "\U0010ffff", "\U00010000", "\ud800", "\udc00x"),
    *(None, True, False, [], {}, [[]], [{}], {"": None}, [None], [[["x"]], "x"], {"a": {"b": [1, 2.5, None, True]}}),
    *({"1": 1}, {1: 1}, {1.5: 1}, {True: 1}, {None: 1}, {1: "a", "1": "b"}, ["x", ("y", 1)], ("t", "u")),
]  # fmt: skip


def deep(random, depth=0):
    """A value that JSON has, of any kind, nested at most three deep."""
    kind = random.randrange(7 if depth > 2 else 9)
    if kind == 0:
        return random.choice([None, True, False])
    if kind == 1:
        return random.randint(-(1 << random.choice([4, 31, 63, 64, 130])), 1 << random.choice([4, 31, 62, 64, 130]))
    if kind in (2, 3):
        return random.choice([random.random(), random.uniform(-1e18, 1e18), float(random.randint(-99, 99))])
    if kind < 7:
        highest = random.choice([0x7F, 0xFF, 0xFFFF, 0x10FFFF])
        return "".join(chr(random.randint(0, highest)) for _ in range(random.choice([0, 1, 5, 40])))
    if kind == 7:
        return [deep(random, depth + 1) for _ in range(random.randrange(5))]
    keys = ["".join(random.choices("ab1é😀", k=random.randrange(4))) for _ in range(random.randrange(5))]
    return {key: deep(random, depth + 1) for key in keys}


def as_line(values):
    parts = []
    for value in values:
        if isinstance(value, (bytes, bytearray, memoryview)):
            parts.append(f"bytes:{bytes(value).hex()}")
        elif isinstance(value, Decimal):
            parts.append(f"decimal:{value}")
        else:
            parts.append(f"json:{json.dumps(value)}")
    return "\t".join(parts)


def jvm_hashes(rows):
    """``Arrays.deepHashCode`` of each row, from one JVM. Spark's own jars bring a compiler, so that a JRE is enough."""
    java = find_java()
    assert java is not None
    jars = Path(pyspark.__file__).parent / "jars" / "*"
    done = subprocess.run(
        [java.home / "bin" / "java", "-cp", jars, "org.codehaus.janino.SimpleCompiler", ORACLE, "HashOracle"],
        input="\n".join(map(as_line, rows)) + "\n",
        env={key: value for key, value in os.environ.items() if key != "LD_PRELOAD"},  # a sanitizer's stays with Python
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return [int(line) for line in done.stdout.split()]


@pytest.mark.timeout(120)
def test_every_key_hashes_as_in_a_jvm():
    chance = random.Random(SEED)
    rows = [[value] for value in EDGES]
    rows += [[deep(chance) for _ in range(chance.randint(1, 3))] for _ in range(6_000)]
    rows += [[chance.randbytes(chance.randrange(20))] for _ in range(200)]
    rows += [[bytearray(b"\x00\x7f\x80\xff"), "x"], [memoryview(b"\x80"), 1]]
    numbers = ["0", "-0", "0.00", "1E+3", "1000", "-1.50", "1E-2147483", "9223372036854775807", "-9223372036854775808"]
    rows += [[Decimal(text)] for text in [*numbers, "18446744073709551616.5"]]
    with decimal.localcontext(prec=80):
        for _ in range(1_000):
            digits = chance.randint(-(10 ** chance.randint(1, 60)), 10 ** chance.randint(1, 60))
            rows.append([Decimal(digits).scaleb(chance.randint(-30, 30)), chance.choice([None, "x", 7])])
    expected = jvm_hashes(rows)
    assert len(expected) == len(rows) > 7_000
    wrong = [(row, want) for row, want in zip(rows, expected, strict=True) if java_deep_hash(row) != want]
    assert not wrong, wrong[:5]


def test_the_hashes_that_java_s_documentation_gives():
    assert java_hash("hello") == 99162322
    assert java_hash("Aa") == java_hash("BB") == 2112
    assert java_hash(1) == 1
    assert java_hash(-1) == 0
    assert java_hash(1 << 32) == 1
    assert java_hash(True) == 1231
    assert java_hash(False) == 1237
    assert java_hash(None) == 0
    assert java_hash([]) == 1
    assert java_hash([1, 2]) == 994
    assert java_hash({"a": 1}) == ord("a") ^ 1
    assert java_deep_hash(["hello"]) == 31 + 99162322
    assert java_deep_hash([]) == 1


def test_lists_and_maps_hold_decimals():
    price = Decimal("1.50")
    assert java_hash(price) == 150 * 31 + 2
    assert java_hash([price]) == 31 + java_hash(price)
    assert java_hash({"p": price}) == ord("p") ^ java_hash(price)


def test_a_subclass_hashes_as_what_json_makes_of_it():
    class Word(str):
        pass

    class Level(enum.IntEnum):
        HIGH = 7

    assert java_hash(Word("storm")) == java_hash("storm")
    assert java_hash(Level.HIGH) == 7


class Opaque:
    def __repr__(self):
        return "<opaque>"


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (Opaque(), "type Opaque: .*; convert it, or leave the option at 'stable'; Given: <opaque>"),
        ({1, 2}, "type set: "),
        (uuid.UUID(int=1), "type UUID: "),
        (1j, "type complex: "),
        ([b"x"], "type bytes inside of a list or dict: .*Given: b'x'"),
        ({"a": bytearray(b"x")}, "type bytearray inside of a list or dict: "),
        ({(1, 2): 3}, r"a dict with keys of type tuple: .*Given: \(1, 2\)"),
        (Decimal("NaN"), r"no infinite decimals and no NaN; Given: Decimal\('NaN'\)"),
        (Decimal("-Infinity"), "no infinite decimals"),
    ],
)
def test_what_storm_could_not_have_is_refused(value, says):
    with pytest.raises(TypeError, match=says):
        java_hash(value)


def test_a_list_inside_of_itself_is_an_error_and_no_crash():
    loop = []
    loop.append(loop)
    with pytest.raises(RecursionError):
        java_hash(loop)


@pytest.mark.parametrize("seed", ["0", "1", "random"])
def test_the_hash_does_not_depend_on_the_process(seed):
    program = "from cython_core.routing.route import java_deep_hash; print(java_deep_hash(['storm', 7, {'a': None}]))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONHASHSEED": seed},
        cwd=ORACLE.parents[3],
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(done.stdout) == java_deep_hash(["storm", 7, {"a": None}])
