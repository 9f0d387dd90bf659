"""What an option names as module:object."""

import sys
from collections import OrderedDict

import pytest

from pystorm_source.errors import OptionError
from pystorm_source.named import load_named

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


def test_a_module_that_raises_anything(tmp_path, monkeypatch):
    (tmp_path / "raises_at_import.py").write_text("1 / 0")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(OptionError, match=r"ZeroDivisionError.*install it where .*, or pray\. Given: 'raises_at"):
        load_named("key", "raises_at_import:Class", FORM, ", or pray")
