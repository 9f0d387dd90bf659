"""Every error has a code of the table, and every code of the table is raised."""

import ast
import builtins
import pickle
import re
from pathlib import Path
from typing import get_args

import pytest

from pystorm_source import errors
from pystorm_source.errors import DataLossError, OptionError, PystormError, StormWentAwayError, WorldError
from pystorm_source.errors.conditions import CONDITIONS, Code

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(ROOT.glob("pystorm_source/**/*.py"))
CLASSES = {name: value for name, value in vars(errors).items() if isinstance(value, type)}
MADE = re.compile(rf"\b({'|'.join(CLASSES)})\(")
"""To parse a file and walk through it takes 50 times as long as to see that it makes no error."""
DEFAULTS = {cls.code for cls in CLASSES.values() if issubclass(cls, PystormError)}


def made_in(source):
    """Line, class and given code of every error of this package that a source makes; None for a missing code."""
    for node in ast.walk(ast.parse(source)) if MADE.search(source) else ():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            cls = CLASSES.get(node.func.id)
            if cls is not None and issubclass(cls, PystormError) and node.func.id != "StormWentAwayError":
                yield node.lineno, cls, next((each.value for each in node.keywords if each.arg == "code"), None)


def codes_in(source):
    """Line, class and code of every error whose code is written out."""
    for line, cls, code in made_in(source):
        if isinstance(code, ast.Constant):
            yield line, cls, code.value


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_error_that_is_made_names_a_code_of_the_table(path):
    source = path.read_text()
    assert [line for line, _, code in made_in(source) if code is None] == [], f'{path}: say code="PYSTORM_…"'
    for line, cls, code in codes_in(source):
        assert code in CONDITIONS, f"{path}:{line}"
        assert CONDITIONS[code].error in CLASSES, f"{path}:{line}: {code} is of Python's own errors"
        assert issubclass(cls, CLASSES[CONDITIONS[code].error]), f"{path}:{line}: {code} is of another class"


# What users write or call: an error here reaches them, whatever Python's own class it must also be.
USERS_ROOMS = ("errors", "types", "api", "testing", "query", "observe", "observe/page", "records", "tuning")
USERS = [
    *(ROOT / "pystorm_source").glob("*.py"),
    *(path for room in USERS_ROOMS for path in (ROOT / "pystorm_source" / room).glob("*.py")),
    ROOT / "pystorm_source/source/register.py",
]
WITHOUT_CODE = {
    "pystorm_source/errors/compiled.py": "ImportError",  # an import that fails, which must be one
    "pystorm_source/__init__.py": "AttributeError",  # of Python's own words, for a name that no module has
    "pystorm_source/types/json_values.py": "ValueError",  # for its callers, which name the option
    "pystorm_source/records/record_folder.py": "PermissionError",  # for its callers: a query goes on without records
    "pystorm_source/records/record_writer.py": "OSError",  # likewise
    "pystorm_source/tuning/observed.py": "KeyError",  # of names that the sweep has from the plan
}


def plain_in(source):
    """Line and class of every error of Python's own that a source raises."""
    for node in ast.walk(ast.parse(source)) if "raise " in source else ():
        call = node.exc if isinstance(node, ast.Raise) else None
        kind = (
            getattr(builtins, call.func.id, None)
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
            else None
        )
        if isinstance(kind, type) and issubclass(kind, Exception):
            yield node.lineno, kind.__name__


@pytest.mark.parametrize("path", sorted(USERS), ids=lambda path: str(path.relative_to(ROOT)))
def test_what_users_write_and_call_raises_errors_that_have_a_code(path):
    allowed = WITHOUT_CODE.get(path.relative_to(ROOT).as_posix())
    assert [found for found in plain_in(path.read_text()) if found[1] != allowed] == []


def test_the_reader_of_plain_errors_finds_what_it_looks_for():
    source = 'raise TypeError("x")\nraise OptionError("y")\nraise coded(ValueError, "PYSTORM_Y", "z")\nraise error'
    assert list(plain_in(source)) == [(1, "TypeError")]


def test_the_reader_of_errors_finds_what_it_looks_for():
    found = list(made_in('raise OptionError("x")\nmake(WorldError("y", code="PYSTORM_Y"), code=1)\nValueError("z")'))
    assert [(line, cls) for line, cls, _ in found] == [(1, OptionError), (2, WorldError)]
    assert found[0][2] is None and found[1][2].value == "PYSTORM_Y"


def test_every_code_is_raised():
    texts = [path.read_text() for path in SOURCES if path != ROOT / "pystorm_source/errors/conditions.py"]
    texts += [path.read_text() for suffix in ("py", "pyx", "pxi") for path in ROOT.glob(f"cython_core/**/*.{suffix}")]
    named = {code for text in texts for code in re.findall(r'"(PYSTORM_[A-Z_]+)"', text)}
    assert set(CONDITIONS) - named == set()


def test_the_table_has_every_code_once_with_cause_and_remedy():
    assert tuple(CONDITIONS) == get_args(Code)
    assert set(CONDITIONS) >= DEFAULTS
    for code, condition in CONDITIONS.items():
        assert re.fullmatch(r"PYSTORM_[A-Z_]+[A-Z]", code)
        for text in (condition.cause, condition.remedy):
            assert text.endswith(".") and text[0].isupper() | text.startswith("`"), code
        names = re.findall(r"\w*Error|\w*Failed|\w*Broken", condition.error)
        assert names and all(name in CLASSES or name == "RowError" or hasattr(builtins, name) for name in names), code


def test_a_code_stands_before_the_message_and_in_an_attribute():
    error = OptionError("unknown option 'x'. Given: 'x'", code="PYSTORM_UNKNOWN_OPTION")
    assert str(error) == "[PYSTORM_UNKNOWN_OPTION] unknown option 'x'. Given: 'x'"
    assert error.code == "PYSTORM_UNKNOWN_OPTION"
    assert error.message == "unknown option 'x'. Given: 'x'"


@pytest.mark.parametrize("error", [DataLossError("gone"), DataLossError("gone", code="PYSTORM_DATA_LOST")])
def test_an_error_keeps_its_code_on_its_way_to_another_process(error):
    there = pickle.loads(pickle.dumps(error))
    assert (type(there), str(there), there.code) == (DataLossError, str(error), error.code)


def test_an_error_that_a_user_raises_has_the_code_of_its_class():
    class BrokerAway(WorldError):
        pass

    assert str(WorldError("no broker")) == "[PYSTORM_EXTERNAL_FAILURE] no broker"
    assert BrokerAway("no broker").code == "PYSTORM_EXTERNAL_FAILURE"
    assert str(StormWentAwayError()) == "Got EOF while reading from Storm"


def test_every_class_of_the_tree_has_a_code_of_that_class():
    own = {cls: vars(cls).get("code") for cls in CLASSES.values() if issubclass(cls, PystormError)}
    assert [cls for cls, code in own.items() if code is None] == [StormWentAwayError]
    assert [cls for cls, code in own.items() if code and not issubclass(cls, CLASSES[CONDITIONS[code].error])] == []


def test_there_are_at_most_seventy():
    """One for each thing that a user does differently."""
    assert len(CONDITIONS) <= 70
