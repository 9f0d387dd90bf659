"""Names where streamparse's and pystorm's users look for them, in our modules and, once asked for, in theirs."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import pystorm_source
from pystorm_source import thrift
from pystorm_source.compat import ALIASES

ROOT = Path(__file__).resolve().parents[1]

BOLTS = ["BatchingBolt", "Bolt", "JavaBolt", "ShellBolt", "TicklessBatchingBolt"]
SPOUTS = ["JavaSpout", "ReliableSpout", "ShellSpout", "Spout"]
DSL = ["Grouping", "Stream", "Topology"]
PATHS = {
    "": [*BOLTS, *SPOUTS, *DSL, "Component", "StormHandler", "Tuple"],
    ".bolt": [*BOLTS, "Component", "Tuple"],
    ".spout": [*SPOUTS, "Component"],
    ".component": ["Component", "LogStream", "StormHandler", "StormWentAwayError", "Tuple"],
    ".dsl": [*DSL, "ComponentSpec"],
    ".exceptions": ["StormWentAwayError"],
    ".storm": [*BOLTS, *SPOUTS, "Component", "StormHandler", "Tuple"],
    ".thrift": ["GlobalStreamId", "JavaObjectArg", "StreamInfo"],
}


@pytest.mark.parametrize(("path", "names"), PATHS.items())
def test_every_module_holds_its_names_once(path, names):
    module = importlib.import_module(f"pystorm_source{path}")
    for name in names:
        assert name in module.__all__
        if hasattr(pystorm_source, name):
            assert getattr(module, name) is getattr(pystorm_source, name)


def test_thrift_is_named_not_made():
    with pytest.raises(NotImplementedError, match="in Python. Given: JavaObjectArg"):
        thrift.JavaObjectArg(int_arg=5)
    with pytest.raises(NotImplementedError, match=r"outputs = \[Stream.*Given: StreamInfo"):
        thrift.StreamInfo(output_fields=["a"])


def test_the_error_that_never_comes_can_be_caught():
    from pystorm_source.exceptions import StormWentAwayError

    assert str(StormWentAwayError()) == "Got EOF while reading from Storm"


# --- install() changes the whole process: each test has one of its own ---


def run(program, path=(), status=0):
    ended = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {[str(ROOT), *map(str, path)]!r}\n{program}"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.returncode == status, ended.stderr
    return ended.stdout + ended.stderr


INSTALL = "from pystorm_source.compat import install; install()\n"


def test_without_install_their_names_are_not_taken():
    assert (
        run(
            "import importlib.util, pystorm_source\n"
            "print([importlib.util.find_spec(name) for name in ('streamparse', 'pystorm')])"
        )
        == "[None, None]\n"
    )


def test_every_path_of_theirs():
    imports = "".join(
        f"from {name} import {', '.join(PATHS[ours.removeprefix('pystorm_source')])}\n"
        for name, ours in ALIASES.items()
    )
    assert run(INSTALL + INSTALL + imports + "print(Bolt is __import__('pystorm_source').Bolt)") == "True\n"
    checks = "import streamparse.dsl.topology, streamparse\nfrom streamparse import dsl, storm, bolt\n"
    assert run(INSTALL + checks + "print(dsl.Topology is streamparse.Topology, storm.bolt.Bolt is bolt.Bolt)") == (
        "True True\n"
    )


def test_what_is_not_there_says_so():
    said = run(INSTALL + "import streamparse\nstreamparse.nothing", status=1)
    assert "pystorm_source has no 'nothing' for 'streamparse'; docs/MIGRATING.md" in said
    for module in ("streamparse.cli", "streamparse.api", "pystorm.serializers"):
        assert "ModuleNotFoundError" in run(INSTALL + f"import {module}", status=1)


@pytest.mark.parametrize("package", ["streamparse", "pystorm"])
@pytest.mark.parametrize(("first", "how"), [("", "importable"), ("import {}\n", "already imported")])
def test_the_real_ones_are_not_covered(tmp_path, package, first, how):
    (tmp_path / f"{package}.py").write_text("REAL = True\n")
    said = run(first.format(package) + INSTALL, path=[tmp_path], status=1)
    assert f"UsageError: [PYSTORM_PACKAGE_IN_THE_WAY] the real {package!r} is installed here" in said
    assert f"Given: {package!r} {how}" in said
    kept = run(
        "try:\n    from pystorm_source.compat import install; install()\nexcept ValueError as e: raise\n"
        "except Exception: pass\n"
        f"import {package}, sys; print({package}.REAL, [n for n in sys.modules if n in ('streamparse', 'pystorm')])",
        path=[tmp_path],
    )
    assert kept == f"True ['{package}']\n"


TOPOLOGY = """
import streamparse
from streamparse.bolt import Bolt
from streamparse.spout import Spout

class Words(Spout):
    outputs = ["word"]
    def next_tuple(self):
        self.emit(["a"])

class Count(Bolt):
    outputs = ["word", "n"]
    def process(self, tup):
        assert isinstance(tup, streamparse.Tuple)
        self.emit([tup.values.word, 1])

class WordCount(streamparse.Topology):
    words = Words.spec()
    counts = Count.spec(inputs={words: streamparse.Grouping.fields("word")})
"""


def test_a_topology_of_theirs_compiles_and_travels(tmp_path):
    """With its module if that can be imported, by value (``streamparse`` in it, too) if it is a script's."""
    (tmp_path / "theirs.py").write_text(INSTALL + TOPOLOGY)
    compiles = "from pystorm_source.plan import compile_plan; import pickle\n"
    by_reference = compiles + "from theirs import WordCount\nprint(pickle.dumps(compile_plan(WordCount)).hex())"
    loads = "import pickle; plan = pickle.loads(bytes.fromhex({!r})); print([c.name for c in plan.components])"
    pickled = run(by_reference, path=[tmp_path]).strip()
    assert run(loads.format(pickled), path=[tmp_path]) == "['words', 'counts']\n"
    by_value = (
        INSTALL
        + TOPOLOGY
        + compiles
        + ("from pyspark import cloudpickle\nprint(cloudpickle.dumps(compile_plan(WordCount)).hex())")
    )
    pickled = run(by_value).strip()
    uses = loads.format(pickled) + "; print(plan.components[1].cls.process.__globals__['streamparse'].Tuple.__module__)"
    assert run(uses) == "['words', 'counts']\ncython_core.tuples.tuple\n"
