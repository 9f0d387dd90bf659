"""docs/lessons as a reader types them: their blocks in order, and what they print, beside what the page shows."""

import contextlib
import io
import re
from itertools import pairwise

import pytest

from pystorm_source import stacks
from pystorm_source.errors import UsageError
from tests.channel.reports.made_reports import wait_until
from tests.docs.pages import LESSONS, ROOT, blocks, steps

LEAST_WORDS, MOST_WORDS = 250, 450
"""Of a lesson, its code included. More: it is not read and typed in ten minutes any more."""
# A reader waits some seconds; a busy machine may need more.
WAITING = {"time.sleep(5)": 'wait_until(lambda: is_in(query, "process()"))'}

each_lesson = pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.stem)


def pattern(text: str) -> re.Pattern:
    """Of what the page shows as printed; ``...`` is any text."""
    return re.compile(".*".join(re.escape(part) for part in text.strip().split("...")), re.DOTALL)


def is_in(query, call: str) -> bool:
    """Whether a task of the query answers that it is in this call."""
    with contextlib.suppress(UsageError):
        return call in str(stacks(query))
    return False


@pytest.mark.spark
@pytest.mark.timeout(240)
@pytest.mark.parametrize("lesson", [each for each in LESSONS if blocks(each, "python")], ids=lambda lesson: lesson.stem)
def test_a_lesson_prints_what_it_shows(lesson, spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # Classes of __main__ travel by value, like those of a script.
    names = {"__name__": "__main__", "wait_until": wait_until, "is_in": is_in}
    printed = io.StringIO()
    for block in steps(lesson):
        text = block.text
        if block.language == "python":
            for waiting, until in WAITING.items():
                text = text.replace(waiting, until)
            with contextlib.redirect_stdout(printed):
                exec(compile("\n" * (block.line - 1) + text, lesson, "exec"), names)
        elif block.language == "text":
            found = printed.getvalue().strip()
            assert pattern(text).fullmatch(found), f"{lesson.name}:{block.line} shows\n{text}\nprinted:\n{found}"
            printed = io.StringIO()
    assert not printed.getvalue(), "the page does not show what its last block prints"


@each_lesson
def test_a_lesson_is_short(lesson):
    assert LEAST_WORDS <= len(lesson.read_text().split()) <= MOST_WORDS


def test_each_lesson_leads_to_the_next():
    assert [lesson.name[0] for lesson in LESSONS] == list("12345678")
    for lesson, following in pairwise(LESSONS):
        end = lesson.read_text().rpartition("\n## ")[2]
        assert end.startswith("What you have seen\n")
        assert f"]({following.name})" in end, f"{lesson.name} does not end with a link to {following.name}"


def test_the_readme_leads_to_the_first_on_its_first_screen():
    before, link, _ = (ROOT / "README.md").read_text().partition(f"](docs/lessons/{LESSONS[0].name})")
    assert link and len(before.split()) <= 150
