"""What each package says that it is for: ``__all__``, which ``dir`` of the front shows, and nothing else."""

import importlib
import subprocess
import sys

import pytest

import pystorm_source
from tests.house import rooms

PACKAGES = sorted(
    path.parent.relative_to(rooms.ROOT).as_posix().replace("/", ".")
    for path in (rooms.ROOT / "pystorm_source").rglob("__init__.py")
)


@pytest.mark.parametrize("name", PACKAGES)
def test_every_package_declares_its_names(name):
    package = importlib.import_module(name)
    assert "__all__" in vars(package)
    assert [each for each in package.__all__ if not hasattr(package, each)] == []


def in_a_process(code):
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def test_the_package_alone_imports_neither_numpy_nor_pyarrow_nor_pyspark():
    said = in_a_process("import sys, pystorm_source; print(sorted({'numpy', 'pyarrow', 'pyspark'} & set(sys.modules)))")
    assert said == "[]\n"


def test_names_and_modules_behind_the_import_of_the_package_alone():
    says = "print(p.errors.OptionError.__name__, p.options.EngineOptions.__name__, p.Bolt is p.api.Bolt)"
    assert in_a_process(f"import pystorm_source as p; {says}") == "OptionError EngineOptions True\n"


@pytest.mark.parametrize("face", ["pystorm_source", "pystorm_source.dsl"])
def test_a_notebook_draws_a_topology_from_each_face(face):
    code = (
        f"from {face} import Topology\nfrom pystorm_source.spouts import MemorySpout\n"
        "class Shop(Topology):\n    rows = MemorySpout.spec(fields=['n long'], rows=[])\n"
        "print(Shop._repr_svg_()[:4])"
    )
    assert in_a_process(code) == "<svg\n"


def test_dir_shows_the_public_names_and_no_other():
    """In a process that has imported more of the package than a user asks for."""
    shown = "import pystorm_source, pystorm_source.testing, pystorm_source.source.register; print(*dir(pystorm_source))"
    names = in_a_process(shown).split()
    assert names == sorted(set(pystorm_source.__all__) - pystorm_source.NOT_SHOWN)
    assert len(names) <= 36
    assert {"read", "read_stream", "register", "PystormProgressListener", "Topology"} <= set(names)
    assert not {"Any", "TYPE_CHECKING", "compiled", "source", "options"} & set(names)
