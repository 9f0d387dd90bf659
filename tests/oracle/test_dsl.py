"""Streams, groupings, specs, topologies, components and tuples: what streamparse takes and refuses, ours does, too."""

import pytest

from tests.oracle import answers, dsl_cases
from tests.oracle.conftest import ANSWERS

CASES = {**dsl_cases.SAME, **{name: case[0] for name, case in dsl_cases.DIFFERENT.items()}}


@pytest.fixture(scope="module")
def theirs(oracle):
    return oracle(ANSWERS, CASES)


@pytest.fixture(scope="module")
def ours():
    return answers.answers("pystorm_source", CASES)


@pytest.mark.parametrize("name", dsl_cases.SAME)
def test_the_same_as_streamparse(name, theirs, ours):
    assert ours[name] == theirs[name], CASES[name]


@pytest.mark.parametrize("name", dsl_cases.DIFFERENT)
def test_different_on_purpose(name, theirs, ours):
    code, of_theirs, of_ours, reason = dsl_cases.DIFFERENT[name]
    assert theirs[name] == of_theirs, code
    assert ours[name] == of_ours, reason
    assert of_theirs != of_ours
    assert reason


def test_the_cases_are_not_all_refusals(theirs):
    """A prelude that fails to work, or answers that are all alike, would make every comparison true."""
    assert sum("gives" in theirs[name] for name in dsl_cases.SAME) > len(dsl_cases.SAME) // 2
    assert len({str(theirs[name]) for name in dsl_cases.SAME}) > 50
