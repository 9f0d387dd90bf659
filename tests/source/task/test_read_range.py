"""What a failed task sends to the driver: the block of the component that raised, and not megabytes of it."""

import traceback

import pytest

from pystorm_source.errors import LONGEST_MESSAGE, LONGEST_TRACEBACK, InternalError, OptionError, TupleFailed
from pystorm_source.spark.border import spark_border


def raised(cause, kind=TupleFailed):
    """What leaves the border, as Spark formats it if it hides the traceback."""

    @spark_border()
    def fails():
        try:
            raise cause
        except ValueError as error:
            raise kind("component 'b', task 2: process() raised ValueError") from error

    with pytest.raises(kind) as caught:
        fails()
    return caught.value, "".join(traceback.format_exception_only(caught.value))


def test_a_cause_of_50_megabytes_is_cut_and_names_its_line():
    error, text = raised(ValueError("x" * 50_000_000))
    assert error.__cause__ is None
    assert len(text) < LONGEST_MESSAGE + LONGEST_TRACEBACK
    head, frames = text.split("Traceback (most recent call last):\n")
    assert "test_read_range.py" in head and "in fails: raise cause" in head
    assert "ValueError: xxx" in frames


def test_the_block_stands_on_lines_of_its_own():
    _, text = raised(ValueError("no\nsecond line"))
    first, what, place, line, remedy, traced, *_ = text.splitlines()
    assert first == "pystorm_source.errors.TupleFailed: [PYSTORM_TUPLE_FAILED] "
    assert what == "component 'b', task 2: process() raised ValueError"
    assert (place, line[:15]) == ("  input:  none", "  line:   File ")
    assert remedy.startswith("  remedy: ")
    assert traced == "Traceback (most recent call last):"
    assert text.endswith("ValueError: no\nsecond line\n")


def test_an_error_of_the_package_says_its_message_and_the_frames_of_the_user():
    _, text = raised(ValueError("no"), OptionError)
    lines = text.splitlines()
    assert lines[0].endswith("component 'b', task 2: process() raised ValueError")
    assert lines[1] == "Traceback (most recent call last):" and lines[-1] == "ValueError: no"


def test_a_fault_of_the_package_keeps_its_traceback():
    error, _ = raised(ValueError("no"), InternalError)
    assert type(error.__cause__) is ValueError
