"""A module that was compiled against other declarations than those installed refuses to be imported."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import cython_core
from cython_core import abi, build_info, sources
from pystorm_source import building
from pystorm_source.errors.conditions import CONDITIONS
from testbed.compiled_module import ROOT, built

pytestmark = pytest.mark.timeout(300)  # a module is compiled
CORE = Path(cython_core.__file__).parent
OLDER = Path(__file__).with_name("older_bolt.pyx")


def said(module, paths=()):
    """What a process says that imports the module."""
    code = f"import sys; sys.path[:0] = {[*map(str, paths), str(module.parent), str(ROOT)]!r}; import older_bolt"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


def test_the_installed_declarations_are_those_that_the_core_was_compiled_from():
    assert build_info.ABI == sources.abi(CORE)
    abi.require("some.module", build_info.VERSION, build_info.ABI)


def test_the_digest_follows_every_declaration_and_no_implementation(tmp_path):
    (tmp_path / "room").mkdir()
    seen = []
    for name in ("a.pyx", "a.pxi", "room/a.pxd", "room/b.pxd", "room/a.h"):
        (tmp_path / name).write_text("int x;")
        seen.append(sources.abi(tmp_path))
    assert len(set(seen)) == 4
    (tmp_path / "a.pyx").write_text("int y;")
    (tmp_path / "a.pxi").write_text("int y;")
    assert sources.abi(tmp_path) == seen[-1]


@pytest.mark.parametrize(
    ("version", "digest", "words"),
    [
        ("0.0.1", build_info.ABI, f"pystorm-source 0.0.1, and pystorm-source {build_info.VERSION} is installed"),
        (build_info.VERSION, "0123456789abcdef", "other declarations of pystorm-source"),
    ],
)
def test_another_version_and_other_declarations_are_refused(version, digest, words):
    with pytest.raises(ImportError, match="fast.bolts was compiled against ") as raised:
        abi.require("fast.bolts", version, digest)
    assert raised.value.code == "PYSTORM_COMPILED_FOR_ANOTHER_VERSION" in CONDITIONS
    assert words in str(raised.value) and f"Given: {version} ({digest})" in str(raised.value)
    assert "pip install --no-build-isolation" in str(raised.value)


@pytest.mark.campaign
def test_a_module_of_this_version_is_imported():
    done = said(built(OLDER))
    assert (done.returncode, done.stdout) == (0, "the module's own code runs\n"), done.stderr


@pytest.mark.campaign
@pytest.mark.parametrize("what", ["building.__version__ = '0.0.1'", "building.abi = lambda core: '0123456789abcdef'"])
def test_a_module_of_another_version_is_refused_before_its_own_code_runs(what):
    done = said(built(OLDER, what))
    assert (done.returncode, done.stdout) == (1, "")
    assert "ImportError: older_bolt was compiled against" in done.stderr
    assert "build it again with the installed version" in done.stderr


@pytest.mark.campaign
def test_a_core_of_another_layout_is_refused_by_digest_not_by_size(tmp_path):
    """The fields of a tuple lie in another order, and are as large: Cython's own check sees nothing."""
    shutil.copytree(CORE, tmp_path / "cython_core", ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    declared = tmp_path / "cython_core/tuples/tuple.pxd"
    first, second = "    cdef object payload\n", "    cdef TupleSource source\n"
    text = declared.read_text()
    assert first + second in text
    declared.write_text(text.replace(first + second, second + first))
    module = built(OLDER, f"import cython_core; cython_core.__file__ = {str(tmp_path / 'cython_core/__init__.py')!r}")
    done = said(module)
    assert (done.returncode, done.stdout) == (1, "")
    assert "other declarations" in done.stderr


def test_a_module_that_is_built_by_hand_does_not_compile(tmp_path):
    """Without the macros of ``extensions`` nothing would tell it from a module of another version."""
    header = "cython_core/compiled/abi.h"
    (tmp_path / "by_hand.c").write_text(f'#include "{header}"\n')
    include = __import__("sysconfig").get_paths()["include"]
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    done = subprocess.run(
        [compiler, "-fsyntax-only", f"-I{ROOT}", f"-I{include}", "by_hand.c"],
        cwd=tmp_path,
        env=os.environ | {"LC_ALL": "C"},
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0
    assert "pystorm_source.building.extensions" in done.stderr


def test_extensions_of_nothing_and_without_cython(monkeypatch):
    from pystorm_source.errors import UsageError

    assert building.extensions([]) == []
    monkeypatch.setitem(sys.modules, "Cython.Build", None)
    with pytest.raises(UsageError, match="pip install setuptools cython"):
        building.extensions("x.pyx")
    assert importlib.util.find_spec("Cython") is not None
