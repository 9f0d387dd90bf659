"""What errors say, whatever they are given: bounded, and never an error of their own."""

import ast
import builtins
import pickle
import time
from pathlib import Path

import pytest

from cython_core.tuples.tuple import values_class_of
from pystorm_source import errors
from pystorm_source.errors import (
    LONGEST_GIVEN,
    LONGEST_MESSAGE,
    LONGEST_TRACEBACK,
    OptionError,
    PystormError,
    cut,
    given,
    said,
    traced,
)
from pystorm_source.options import SourceOptions, parse
from tests.of_all import of_all

ROOT = Path(__file__).resolve().parents[2]
MEGABYTES = 5_000_000


@pytest.mark.parametrize("shown", [cut, lambda text: said(ValueError(text)), OptionError])
def test_a_lone_surrogate_in_a_message_is_shown_as_text_that_utf8_holds(shown):
    assert "bad \\udcff name, ä".encode() in str(shown("bad \udcff name, ä")).encode()


class Mute(Exception):
    def __str__(self):
        raise RuntimeError("will not print")

    __repr__ = __str__


def subclasses(cls):
    for each in cls.__subclasses__():
        yield each
        yield from subclasses(each)


def test_short_text_is_left_as_it_is():
    assert cut("x" * LONGEST_MESSAGE) == "x" * LONGEST_MESSAGE


def test_long_text_keeps_its_begin_and_its_end():
    text = cut("begin" + "x" * MEGABYTES + "end")
    assert text.startswith("beginx") and text.endswith("xend")
    assert len(text) <= LONGEST_MESSAGE
    assert cut(text) == text
    assert f"({MEGABYTES + 8 - LONGEST_MESSAGE + 40} characters)" in text


@pytest.mark.parametrize(
    ("value", "shown"), [("a", "'a'"), (b"a", "b'a'"), (None, "None"), ({"a": [1]}, "{'a': [1]}"), (Mute, repr(Mute))]
)
def test_values_are_shown_as_they_print(value, shown):
    assert given(value) == shown


@pytest.mark.parametrize("piece", ["x", b"x", "\x00"])
def test_large_values_are_cut(piece):
    for value in (piece * MEGABYTES, [piece * MEGABYTES]):
        assert LONGEST_GIVEN // 2 <= len(given(value)) < 5 * LONGEST_GIVEN


def test_what_does_not_print_is_named_by_its_type():
    for value in (Mute(), [Mute()], 10**5000):
        assert given(value) == f"<{type(value).__name__} that does not print>"


def test_exceptions_say_type_and_message_whether_or_not_they_print():
    assert said(ValueError("broken")) == "ValueError: broken"
    assert said(Mute()) == "Mute, which does not print"
    assert len(said(ValueError("x" * MEGABYTES))) <= LONGEST_MESSAGE + len("ValueError: ")


def test_a_field_that_a_tuple_does_not_have_is_told_by_those_that_it_has():
    values = values_class_of("words", "default", ("line", "length"))("a", 1)
    with pytest.raises(AttributeError) as caught:
        values.lyne
    assert said(caught.value) == (
        "AttributeError: 'WordsDefaultTuple' object has no attribute 'lyne'; its fields are line, length: did you mean "
        "'line'?"
    )
    with pytest.raises(AttributeError) as caught:
        values.x
    assert said(caught.value).endswith("; its fields are line, length")
    with pytest.raises(AttributeError) as caught:
        object().line
    assert said(caught.value) == "AttributeError: 'object' object has no attribute 'line'"


def raised(error):
    try:
        raise error
    except Exception as caught:
        return caught


def test_tracebacks_name_the_line_and_are_cut():
    text = traced(raised(ValueError("broken")))
    assert "in raised" in text and text.endswith("ValueError: broken\n")
    for error in (ValueError("x" * MEGABYTES), ValueError("x\n" * 1_000_000), Mute()):
        text = traced(raised(error))
        assert "in raised" in text and len(text) <= LONGEST_TRACEBACK


@pytest.mark.parametrize("cls", sorted({*subclasses(PystormError)}, key=lambda cls: cls.__name__))
def test_every_error_of_this_package_is_cut_and_travels(cls):
    if cls is errors.StormWentAwayError:
        assert cls().message == "Got EOF while reading from Storm"
        return
    error = cls("option 'x': remedy. Given: " + "y" * MEGABYTES)
    assert str(error).startswith(f"[{cls.code}] option 'x': remedy. Given: yyy")
    assert len(str(error)) <= LONGEST_MESSAGE
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


@pytest.mark.campaign
def test_an_option_of_50_megabytes_is_refused_at_once_with_key_and_remedy():
    began = time.monotonic()
    with pytest.raises(OptionError, match=r"option 'maxOffsetsPerTrigger': .*Given: 'yyy") as caught:
        parse(SourceOptions, {"topology": "a:B", "maxOffsetsPerTrigger": "y" * 10 * MEGABYTES})
    assert len(str(caught.value)) <= LONGEST_MESSAGE
    assert time.monotonic() - began < 30


def unbounded(path):
    """Lines of a file that raise an error of Python's own and show a value as large as it may be."""
    source = path.read_text()
    for node in ast.walk(ast.parse(source)) if "Given: " in source else ():  # to parse a file takes long
        if not (isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and isinstance(node.exc.func, ast.Name)):
            continue
        if not hasattr(builtins, node.exc.func.id):
            continue
        for text in (each for each in ast.walk(node) if isinstance(each, ast.JoinedStr)):
            told = False
            for part in text.values:
                told = told or (isinstance(part, ast.Constant) and "Given: " in part.value)
                if told and isinstance(part, ast.FormattedValue) and part.conversion == ord("r"):
                    yield part.lineno


@of_all(sorted(ROOT.glob("pystorm_source/**/*.py")))
def test_what_pythons_own_errors_show_is_cut_too(path):
    assert list(unbounded(path)) == [], f"{path}: show the value by errors.given"


def test_the_reader_of_raises_finds_what_it_looks_for(tmp_path):
    path = tmp_path / "wrong.py"
    path.write_text('raise ValueError(f"no {1!r}. Given: {2!r}")\nraise OptionError(f"Given: {2!r}")\n')
    assert list(unbounded(path)) == [1]
