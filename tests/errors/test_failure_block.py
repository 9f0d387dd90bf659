"""The block that a user reads when a component raises, and the frames that are the user's."""

import sys
import traceback
import types

import pytest

from pystorm_source.errors import LONGEST_TRACEBACK, OptionError, TupleFailed
from pystorm_source.errors.failure_block import FailureBlock
from pystorm_source.errors.user_frames import trim, users_line, users_traceback
from pystorm_source.options.named import load_named


def module(name, text, file=None):
    """A module with these lines as its source, and functions that a test calls."""
    found = types.ModuleType(name)
    exec(compile(text, file or f"/job/{name}.py", "exec"), vars(found))
    return found


def raised(function, *arguments):
    with pytest.raises(BaseException) as caught:
        function(*arguments)
    caught.value.__traceback__ = caught.value.__traceback__.tb_next  # that of this function
    return caught.value


CALLS = "def call(function, *arguments):\n    return function(*arguments)\n"
ENGINE = module("pystorm_source.worker.calls", CALLS)
SPOUT = module("pystorm_source.spouts.mine", CALLS)
BOLT = module(
    "shop", "def process(text):\n    return int(text)\ndef reads(text):\n    import json\n    json.loads(text)\n"
)
INSTALLED = module(
    "installed.bolts", "def process(text):\n    return int(text)\n", "/x/site-packages/installed/bolts.py"
)


def frames(error):
    return [line for line in users_traceback(error).splitlines() if line.startswith("  File ")]


def test_frames_begin_in_the_users_code():
    error = raised(ENGINE.call, ENGINE.call, BOLT.process, "x")
    assert users_line(error) == 'File "/job/shop.py", line 2, in process'
    assert frames(error) == ['  File "/job/shop.py", line 2, in process']


def test_frames_between_those_of_the_user_go():
    error = raised(ENGINE.call, BOLT.process, "x")
    inner = raised(module("outer", CALLS).call, ENGINE.call, BOLT.process, "x")
    assert len(frames(error)) == 1 and len(frames(inner)) == 2


def test_of_a_library_that_raised_the_line_is_the_one_that_called_it():
    error = raised(ENGINE.call, BOLT.reads, "{")
    assert users_line(error) == 'File "/job/shop.py", line 5, in reads'
    assert len(frames(error)) > 1 and "json" in frames(error)[-1]


def test_a_component_that_is_installed_is_the_users_too():
    error = raised(ENGINE.call, INSTALLED.process, "x")
    assert users_line(error) == 'File "/x/site-packages/installed/bolts.py", line 2, in process'
    assert len(frames(error)) == 1


def test_no_step_of_an_import_is_shown(tmp_path, monkeypatch):
    (tmp_path / "raising_import.py").write_text("import no_such_package_at_all\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for module, line in (("raising_import", "import no_such_package_at_all"), ("no_such_package", "")):
        with pytest.raises(OptionError) as raised:
            load_named("topology", f"{module}:T", "a class")
        text = "".join(traceback.format_exception(raised.value.__cause__))
        assert line in text and "importlib._bootstrap" not in text and "importlib/__init__" not in text


def test_libraries_of_a_ready_made_spout_are_not_the_users():
    import json

    error = raised(SPOUT.call, json.loads, "{")
    assert users_line(error) == users_traceback(error) == ""
    trace = error.__traceback__
    assert trim(error).__traceback__ is trace


def test_causes_and_members_are_trimmed_too():
    def both():
        try:
            ENGINE.call(BOLT.process, "x")
        except ValueError as error:
            raise ExceptionGroup("two", [error, raised(ENGINE.call, BOLT.process, "y")]) from error

    text = users_traceback(raised(both))
    assert "pystorm_source" not in text
    assert text.count("shop.py") == 3


def test_a_chain_in_a_circle_ends():
    one, other = raised(BOLT.process, "x"), raised(BOLT.process, "y")
    one.__context__, other.__context__ = other, one
    assert "shop.py" in users_traceback(one)


def failed(cause, what="component 'b', task 2: process() raised ValueError: no"):
    error = TupleFailed("what a log says in one line")
    error.what, error.place, error.remedy, error.__cause__ = what, "tuple (1,) of s.default; offset 1", "mend it", cause
    return error


def test_the_block_is_found_in_any_text():
    block = FailureBlock.of(failed(raised(ENGINE.call, BOLT.process, "x")))
    text = f"[STREAM_FAILED] Query terminated: pystorm_source.errors.TupleFailed: {block}\n\tat org.apache.spark.Some"
    assert FailureBlock.found_in(text) == block._replace(frames="")
    assert FailureBlock.found_in(text).head.count("\n") == 3
    assert str(block).startswith(f"[PYSTORM_TUPLE_FAILED] {block.head}") and str(block).endswith("with base 10: 'x'")


def test_without_an_exception_there_is_no_line():
    block = FailureBlock.of(failed(None, "component 'b', task 2: the tuple was failed"))
    assert str(block).splitlines() == [
        "[PYSTORM_TUPLE_FAILED] component 'b', task 2: the tuple was failed",
        "  input:  tuple (1,) of s.default; offset 1",
        "  remedy: mend it",
    ]
    assert FailureBlock.found_in(f"x\n{block}\ny") == block


def test_an_error_that_has_no_parts_is_shown_by_its_message():
    assert FailureBlock.of(TupleFailed("one\ntwo")).what == "one …"


def test_texts_without_a_block():
    assert FailureBlock.found_in("java.lang.OutOfMemoryError") is None


def test_a_deep_stack_is_cut():
    deep = module("deep", "def process(n):\n    return process(n - 1) + '...' if n else int('x')\n")
    sys.setrecursionlimit(5000)
    try:
        block = FailureBlock.of(failed(raised(ENGINE.call, deep.process, 900)))
    finally:
        sys.setrecursionlimit(1000)
    assert len(str(block)) <= LONGEST_TRACEBACK
    assert block.head in str(block)
