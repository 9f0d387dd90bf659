"""Without the packages of the extra `cli` everything runs but the command line, which says what to install."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BLOCKED = ("typer", "rich", "click", "shellingham", "pydantic")

# As if none of them were installed, for this process and whatever module it imports.
BLOCK = f"""
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {BLOCKED!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
"""

EVERYTHING = """
import importlib, pathlib, sys
for path in sorted(pathlib.Path("pystorm_source").rglob("*.py")):
    if path.parts[1] != "cli" and path.name != "__main__.py":
        importlib.import_module(".".join(path.with_suffix("").parts).removesuffix(".__init__"))
"""

A_TOPOLOGY = """
from pystorm_source import Bolt, Topology
from pystorm_source.spouts import MemorySpout
from pystorm_source.testing import run_topology

class Twice(Bolt):
    outputs = ["m long"]
    def process(self, tup):
        self.emit([2 * tup.values.n])

class Doubles(Topology):
    numbers = MemorySpout.spec(fields=["n long"], rows=[[1], [2]])
    twice = Twice.spec(inputs=[numbers])

assert sorted(run_topology(Doubles).rows("twice")) == [(2,), (4,)]
"""


def python(code: str, before: str = BLOCK) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", before + code], cwd=ROOT, capture_output=True, text=True, timeout=100)


@pytest.mark.parametrize("code", [EVERYTHING, A_TOPOLOGY], ids=["every module is imported", "a topology runs"])
def test_the_library_does_without(code):
    done = python(code)
    assert done.returncode == 0, done.stderr


def test_the_command_says_what_to_install():
    done = python("from pystorm_source.__main__ import main; sys.argv = ['pystorm-source', 'check']; main()")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "error: the command line needs rich and typer: pip install 'rich>=13' 'typer>=0.12'. Given: no module 'typer'\n"
    )


def test_another_missing_module_is_not_explained_away():
    for module in ("cli.main", "cli.check"):
        missing = f"import sys; sys.modules['pystorm_source.{module}'] = None; sys.argv = ['pystorm-source', 'check']\n"
        done = python("from pystorm_source.__main__ import main; main()", before=missing)
        assert done.returncode == 1 and "Traceback" in done.stderr


def test_one_missing_package_of_the_two_is_advised_before_a_command_needs_it():
    missing = "import sys; sys.modules['rich'] = None; sys.argv = ['pystorm-source', '--version']\n"
    done = python("from pystorm_source.__main__ import main; main()", before=missing)
    assert done.returncode == 2 and "Given: no module 'rich'" in done.stderr
