"""docs/ERRORS.md: each example raises just its code, and the page shows what was raised."""

import re
import sys

import pytest

from pystorm_source.errors.conditions import CONDITIONS
from tests.docs.errors.examples import EXAMPLES
from tests.docs.errors.page import PAGE, SECTIONS, code_of, markdown, raised

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def errors():
    return raised()


def test_every_code_has_an_example():
    assert set(EXAMPLES) == set(CONDITIONS)
    assert set(SECTIONS) <= set(CONDITIONS)


@pytest.mark.parametrize("code", CONDITIONS)
def test_its_examples_raise_just_this_code(errors, code):
    for raised_error in errors[code]:
        found, error = code_of(raised_error)
        assert found == code
        bases = {cls.__name__ for cls in type(error).__mro__}
        assert bases & set(re.findall(r"\w+", CONDITIONS[code].error))


def test_every_code_has_an_anchor():
    headings = re.findall(r"^### (\w+)$", PAGE.read_text(), re.MULTILINE)
    assert headings == list(CONDITIONS)


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="other versions of Python and libraries say it otherwise")
def test_the_page_shows_what_was_raised(errors):
    assert PAGE.read_text() == markdown(errors), "python -m tests.docs.errors.page --write"
