"""Dead letters read back: which, what of them, and what is no dead letter."""

import datetime
import json
from decimal import Decimal

import pytest

from pystorm_source import Bolt, Hopeless, Topology
from pystorm_source.errors import OptionError, TupleFailed
from pystorm_source.spouts import DeadLetterSpout, MemorySpout
from pystorm_source.testing import run_topology
from pystorm_source.types.json_text import json_text

FIELDS = ["id long", "item string"]


def letter(values, **more):
    line = {"component": "call", "reason": "503 of the service", "attempts": 4, "partition": "3", "offset": 17}
    return json.dumps(line | {"values": json_text(values), "time": "2026-03-01T00:00:00+00:00"} | more)


@pytest.fixture
def folder(tmp_path):
    lines = [
        letter([1, "hat"]),
        letter([2, "coat"], component="bill"),
        letter([3, None], reason="TimeoutError: after 3 s"),
        letter([4, "sock"], attempts=1),
    ]
    (tmp_path / "0-part-00000.jsonl").write_text("".join(f"{line}\n" for line in lines))
    (tmp_path / ".1-part-00000.tmp").write_text(letter([9, "of a task at work"]) + "\n")
    return tmp_path


def read(folder, fields=FIELDS, **given):
    class Again(Topology):
        letters = DeadLetterSpout.spec(path=folder, fields=fields, **given)

    return run_topology(Again).rows("letters")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, [1, 2, 3, 4]),
        ({"component": "call"}, [1, 3, 4]),
        ({"reason": "503|Refused"}, [1, 2, 4]),
        ({"component": "call", "reason": "^Timeout"}, [3]),
        ({"component": "other"}, []),
    ],
)
def test_those_are_read_that_were_asked_for(folder, given, expected):
    assert [row[0] for row in read(folder, **given)] == expected


def test_what_is_known_about_a_letter_comes_behind_its_values(folder):
    found = read(folder, about=["attempts", "reason", "partition", "offset"], component="bill")
    assert found == [(2, "coat", 4, "503 of the service", "3", 17)]


def test_values_are_of_the_declared_types_again(tmp_path):
    at = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)
    values = (True, 1.5, "ü", b"\x00\xff", datetime.date(2026, 3, 1), at, Decimal("1.25"), [1, 2], {"n": 1}, None)
    (tmp_path / "a.jsonl").write_text(letter(values) + "\n")
    fields = ["a boolean", "b double", "c string", "d binary", "e date", "f timestamp", "g decimal(5,2)",
              "h array<int>", "i struct<n:int>", "j long"]  # fmt: skip
    assert read(tmp_path, fields) == [values]


def test_floats_that_json_does_not_have_are_words(tmp_path):
    (tmp_path / "a.jsonl").write_text(letter([float("-inf"), [float("nan"), 0.5], "NaN"]) + "\n")
    ((first, (second, third), text),) = read(tmp_path, ["a float", "b array<double>", "c string"])
    assert (first, third, text) == (float("-inf"), 0.5, "NaN")
    assert second != second


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (letter([1]), "the letter has 1 values, and 2 fields are declared"),
        (letter(["one", "hat"]), "Expected `int"),
        (letter([float("nan"), "hat"]), "Expected `int"),
        (letter(["Infinity", "NaN"]), "Expected `int"),
        ('{"id": 1}', "no dead letter: .*`values`"),
        ('{"values": "[1, "}', "no dead letter"),
    ],
)
def test_what_does_not_fit_is_named_with_its_file(tmp_path, line, said):
    (tmp_path / "a.jsonl").write_text(line + "\n")
    with pytest.raises(TupleFailed, match=said) as raised:
        read(tmp_path)
    assert "a.jsonl" in str(raised.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"reason": "("}, "'dead.letters.reason' is a regular expression"),
        ({"about": ["tries"]}, "'dead.letters.about' takes component, reason, .*Given: tries"),
        ({"fields": None}, "needs the fields of the tuples that failed"),
    ],
)
def test_wrong_options_are_named(folder, given, said):
    with pytest.raises(OptionError, match=said):
        read(folder, **{"fields": FIELDS} | given)


class Refuses(Bolt):
    outputs = ["id long"]
    wrong = frozenset({2, 4})

    def process(self, tup):
        if tup.values.id in self.wrong:
            raise Hopeless(f"no item {tup.values.item}")
        self.emit([tup.values.id])


class Knows(Refuses):
    wrong = frozenset({4})


def test_what_fails_again_is_a_dead_letter_again(tmp_path):
    config = {"topology.dead.letter": "stream"}

    class First(Topology):
        orders = MemorySpout.spec(fields=FIELDS, rows=[[n, f"item {n}"] for n in range(6)])
        call = Refuses.spec(inputs=[orders])

    def dead(topology, spout):
        done = run_topology(topology, config=config)
        names = ("component", "reason", "attempts", "partition", "offset", "values", "time")
        letters = [dict(zip(names, row, strict=True)) for row in done.rows(spout, "__dead_letter")]
        return [row[0] for row in done.rows("call")], letters

    rows, letters = dead(First, "orders")
    assert (rows, len(letters)) == ([0, 1, 3, 5], 2)
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(each, default=str) + "\n" for each in letters))

    class Again(Topology):
        letters = DeadLetterSpout.spec(path=tmp_path, fields=FIELDS, component="call")
        call = Knows.spec(inputs=[letters])

    rows, letters = dead(Again, "letters")
    assert rows == [2]
    assert [(each["component"], json.loads(each["values"])) for each in letters] == [("call", [4, "item 4"])]
