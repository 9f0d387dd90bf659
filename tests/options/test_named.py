"""What an option names as module:object."""

import sys
import traceback
from collections import OrderedDict
from pathlib import Path

import pytest

from pystorm_source.errors import OptionError
from pystorm_source.options.named import load_named

FORM = "a class as module:Class"


def test_an_object_inside_of_another():
    module, found = load_named("key", "collections:OrderedDict.fromkeys", FORM)
    assert module is sys.modules["collections"]
    assert found([1]) == {1: None}


def test_dots_alone_if_that_is_right():
    assert load_named("key", "collections.OrderedDict", FORM, dots=True)[1] is OrderedDict
    with pytest.raises(OptionError, match=FORM):
        load_named("key", "OrderedDict", FORM, dots=True)


def test_a_module_without_it():
    assert load_named("key", "collections:Nothing.there", FORM)[1] is None


@pytest.mark.parametrize("given", ["", "collections", ":Class", "module:", ".relative:Class", "a..b:C", "a b:C", "a:1"])
def test_other_forms_are_refused(given):
    with pytest.raises(OptionError) as raised:
        load_named("key", given, FORM)
    assert str(raised.value) == f"[PYSTORM_INVALID_OPTION] option 'key' is a class as module:Class. Given: {given!r}"


@pytest.mark.parametrize("given", ["jobs/words.py:Words", "words.py:Words/"])
def test_a_files_name_is_named_as_such(given):
    with pytest.raises(OptionError, match="not the name of a file"):
        load_named("key", given, FORM)


def refused(tmp_path, monkeypatch, source, name):
    (tmp_path / f"{name}.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(OptionError) as caught:
        load_named("key", f"{name}:Class", FORM, ", or pray")
    error = caught.value
    assert error.message.startswith(f"option 'key': module {name!r} ")
    assert error.message.endswith(f". Given: '{name}:Class'") and "\n" not in error.message
    return error


def test_a_module_that_is_not_there():
    with pytest.raises(OptionError) as caught:
        load_named("key", "no_such.module:Class", FORM, ", or pray")
    assert caught.value.code == "PYSTORM_NAME_NOT_FOUND"
    assert caught.value.message == (
        "option 'key': module 'no_such.module' cannot be imported by this Python (ModuleNotFoundError: No module named "
        "'no_such'); install it where driver and executors run, or pray. Given: 'no_such.module:Class'"
    )


def test_a_module_that_raises_names_its_line(tmp_path, monkeypatch):
    source = "import collections\n\n\ndef half(n):\n    return 1 / n\n\n\nHALF = half(0)\n"
    error = refused(tmp_path, monkeypatch, source, "raises_at_import")
    assert error.code == "PYSTORM_IMPORT_FAILED"
    assert ": it raises ZeroDivisionError: division by zero. " in error.message
    assert f'File "{tmp_path / "raises_at_import.py"}", line 5, in half: return 1 / n. ' in error.message


def test_the_traceback_of_a_failed_import_has_the_users_frames_alone(tmp_path, monkeypatch):
    error = refused(tmp_path, monkeypatch, "def half(n):\n    return 1 / n\n\n\nHALF = half(0)\n", "raises_in_a_call")
    frames = traceback.extract_tb(error.__cause__.__traceback__)
    assert [(Path(frame.filename).name, frame.lineno) for frame in frames] == [
        ("raises_in_a_call.py", n) for n in (5, 2)
    ]


def test_a_package_that_a_module_needs(tmp_path, monkeypatch):
    error = refused(tmp_path, monkeypatch, "import json\nimport no_such_package.inner\n", "needs_a_package")
    assert error.code == "PYSTORM_PACKAGE_MISSING"
    assert "it needs 'no_such_package', which this Python does not have" in error.message
    file = tmp_path / "needs_a_package.py"
    assert f'File "{file}", line 2, in <module>: import no_such_package.inner. Install the package, ' in error.message


def test_a_package_that_another_module_of_the_users_needs(tmp_path, monkeypatch):
    (tmp_path / "shared_part.py").write_text("\nfrom no_such_package import part\n")
    error = refused(tmp_path, monkeypatch, "import shared_part\n", "imports_another")
    assert error.code == "PYSTORM_PACKAGE_MISSING"
    assert f'File "{tmp_path / "shared_part.py"}", line 2, in <module>: from no_such_package' in error.message


def test_a_module_that_is_no_python(tmp_path, monkeypatch):
    error = refused(tmp_path, monkeypatch, "import json\nclass Words(:\n", "no_python")
    assert error.code == "PYSTORM_IMPORT_FAILED"
    assert f'File "{tmp_path / "no_python.py"}", line 2: class Words(:. Correct that line' in error.message


def test_a_module_that_ends_the_process(tmp_path, monkeypatch):
    error = refused(tmp_path, monkeypatch, "import sys\nsys.exit(3)\n", "a_script")
    assert error.code == "PYSTORM_IMPORT_FAILED"
    assert "it raises SystemExit: 3" in error.message and "line 2, in <module>: sys.exit(3)" in error.message


def test_what_a_module_was_refused_for_is_given_once(tmp_path, monkeypatch):
    source = (
        "from pystorm_source import Topology\nfrom pystorm_source.plan import compile_plan\ncompile_plan(Topology)\n"
    )
    error = refused(tmp_path, monkeypatch, source, "refuses_at_import")
    assert error.code == "PYSTORM_IMPORT_FAILED"
    assert "needs components" in error.message
    assert error.message.count("Given: ") == 1
