"""The DSL, components and tuples: what streamparse takes, refuses and sends, ours does, too."""

import pytest

from tests.oracle import answers, dsl_cases, unit_cases
from tests.oracle.conftest import ANSWERS

SAME = {**dsl_cases.SAME, **unit_cases.SAME}
DIFFERENT = {**dsl_cases.DIFFERENT, **unit_cases.DIFFERENT}
CASES = {**SAME, **{name: case[0] for name, case in DIFFERENT.items()}}


@pytest.fixture(scope="module")
def theirs(oracle):
    return oracle(ANSWERS, CASES)


@pytest.fixture(scope="module")
def ours():
    return answers.answers("pystorm_source", CASES)


@pytest.mark.parametrize("name", SAME)
def test_the_same_as_streamparse(name, theirs, ours):
    assert ours[name] == theirs[name], CASES[name]


@pytest.mark.parametrize("name", DIFFERENT)
def test_different_on_purpose(name, theirs, ours):
    code, of_theirs, of_ours, reason = DIFFERENT[name]
    assert theirs[name] == of_theirs, code
    assert ours[name] == of_ours, reason
    assert of_theirs != of_ours
    assert reason


def test_the_cases_are_not_all_refusals(theirs):
    """A prelude that fails to work, or answers that are all alike, would make every comparison true."""
    assert len(CASES) == len(dsl_cases.SAME) + len(unit_cases.SAME) + len(DIFFERENT)
    assert sum("gives" in theirs[name] for name in SAME) > len(SAME) // 2
    assert len({str(theirs[name]) for name in SAME}) > 80
