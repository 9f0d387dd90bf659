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


def test_dir_shows_the_public_names_and_no_other():
    """In a process that has imported more of the package than a user asks for."""
    shown = "import pystorm_source, pystorm_source.testing, pystorm_source.source.register; print(*dir(pystorm_source))"
    names = subprocess.run([sys.executable, "-c", shown], check=True, capture_output=True, text=True).stdout.split()
    assert names == sorted(pystorm_source.__all__)
    assert {"read", "read_stream", "register", "PystormProgressListener", "Topology"} <= set(names)
    assert not {"Any", "TYPE_CHECKING", "compiled", "source", "options"} & set(names)
