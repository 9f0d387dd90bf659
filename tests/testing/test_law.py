"""The laws that errors of emit stand for: found by the error's code, whatever its words are."""

import pytest

from pystorm_source import Bolt, Topology
from pystorm_source.errors import TupleFailed
from pystorm_source.errors.conditions import CONDITIONS
from pystorm_source.spouts import MemorySpout
from pystorm_source.testing import run_topology
from pystorm_source.testing.law import OF_ERRORS, law_of_error


def emitting(emit):
    class Emits(Bolt):
        outputs = ["n long", "word string"]

        def process(self, tup):
            emit(self)

    class Line(Topology):
        numbers = MemorySpout.spec(fields=["n long"], rows=[[1]])
        emits = Emits.spec(inputs=[numbers])

    return Line


WRONG = [
    ("PYSTORM_EMIT_NOT_A_LIST", lambda bolt: bolt.emit("word")),
    ("PYSTORM_UNKNOWN_STREAM", lambda bolt: bolt.emit([1, "a"], stream="other")),
    ("PYSTORM_WRONG_NUMBER_OF_FIELDS", lambda bolt: bolt.emit([1])),
    ("PYSTORM_WRONG_NUMBER_OF_FIELDS", lambda bolt: bolt.emit_many([1, 2], ["a"])),
    ("PYSTORM_VALUE_DOES_NOT_FIT", lambda bolt: bolt.emit(["one", "a"])),
    ("PYSTORM_INVALID_DIRECT_TASK", lambda bolt: bolt.emit([1, "a"], direct_task=1)),
    ("PYSTORM_INVALID_ANCHOR", lambda bolt: bolt.emit([1, "a"], anchors="1")),
]


@pytest.mark.parametrize(("code", "emit"), WRONG)
def test_an_error_of_emit_has_a_code_and_pythons_own_class(code, emit):
    with pytest.raises(TupleFailed) as caught:
        run_topology(emitting(emit))
    cause = caught.value.__cause__
    assert cause.code == code
    assert type(cause).__name__ in CONDITIONS[code].error
    assert not str(cause).startswith("[")  # pystorm's own words
    assert law_of_error(caught.value) == OF_ERRORS.get(code)


@pytest.mark.parametrize("error", [ValueError("Unknown stream ID"), SystemExit(3), KeyError()])
def test_errors_of_the_users_own_stand_for_no_law(error):
    assert law_of_error(error) is None


def test_a_code_of_another_kind_is_none_of_ours():
    error = ValueError("no")
    error.code = []
    assert law_of_error(error) is None
