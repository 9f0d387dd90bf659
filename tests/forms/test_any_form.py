"""Whatever the topology, and in whatever forms its components emit and take rows: the rows are those of the model.

``PYSTORM_FORMS_EXAMPLES``: how many topologies to try; with ``HYPOTHESIS_PROFILE=search`` others than last time.
``python -m tests.forms --rounds 20000`` tries them by seed.
"""

import os

import pytest
from hypothesis import HealthCheck, event, given, settings

from tests.acking.drawn import Seeded, shrinking
from tests.forms.check import check
from tests.forms.drawn import FORMS, GROUPINGS, case_of
from tests.sizes import sized

EXAMPLES = int(os.environ.get("PYSTORM_FORMS_EXAMPLES", sized(150)))
BY_MACHINE = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large]


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=BY_MACHINE)
@given(case=shrinking(case_of))
def test_rows_do_not_depend_on_their_form(case, scheduler):
    event(check(case, scheduler))


@pytest.mark.inline
@pytest.mark.parametrize("first", range(0, sized(250), 50))
def test_rows_of_the_first_cases_of_the_campaign(first):
    for seed in range(first, first + 50):
        check(case_of(Seeded(seed)), "inline")


FOUND = {
    114: "an async bolt's batches were in no tree, so rows left twice",
    223: "a dictionary of more values than its rows have did not become text",
    296: "two spout tasks waited for the room that the other's unpublished batch held",
}


@pytest.mark.parametrize("seed", FOUND, ids=FOUND.get)
def test_what_was_found_before(seed, scheduler):
    check(case_of(Seeded(seed)), scheduler)


@pytest.mark.inline
def test_all_forms_and_groupings_are_drawn():
    cases = [case_of(Seeded(seed)) for seed in range(200)]
    nodes = [node for case in cases for node in case.nodes]
    assert {node.form for node in nodes} == set(FORMS)
    assert {grouping for node in nodes for _, grouping in node.inputs} == set(GROUPINGS)
    assert {len(case.nodes) for case in cases} == {1, 2, 3, 4, 5}
    assert sum(case.is_exact() and any(node.fails for node in case.nodes) for case in cases) > 50
