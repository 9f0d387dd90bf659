"""What a failed task sends to the driver: the line of the component that raised, and not megabytes of it."""

import traceback

import pytest

from pystorm_source.errors import LONGEST_TRACEBACK, TupleFailed, said
from pystorm_source.source.task.read_range import _note_cause


def failure(message):
    """As a run raises it: the component's exception is its cause."""
    try:
        try:
            raise ValueError(message)
        except ValueError as error:
            raise TupleFailed(f"component 'b', task 2: process() raised {said(error)}") from error
    except TupleFailed as failed:
        return failed


@pytest.mark.parametrize("simplified", ["", "True"])
def test_a_cause_of_50_megabytes_is_cut_and_names_its_line(simplified, monkeypatch):
    monkeypatch.setenv("SPARK_SIMPLIFIED_TRACEBACK", simplified)
    failed = failure("x" * 50_000_000)
    _note_cause(failed)
    text = "".join(traceback.format_exception(failed))
    assert len(text) < 2 * LONGEST_TRACEBACK
    assert "Caused by:" in text and "in failure" in text and "ValueError: xxx" in text


@pytest.mark.parametrize(("simplified", "noted"), [("", 0), ("True", 1)])
def test_a_short_cause_stays_and_is_noted_where_spark_would_drop_it(simplified, noted, monkeypatch):
    monkeypatch.setenv("SPARK_SIMPLIFIED_TRACEBACK", simplified)
    failed = failure("short")
    _note_cause(failed)
    assert type(failed.__cause__) is ValueError
    assert len(getattr(failed, "__notes__", [])) == noted
