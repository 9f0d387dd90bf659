"""``run``, ``draw`` and ``check`` take the file of a topology, as it lies in a project of streamparse's."""

import json
import sys

import pytest
from typer.testing import CliRunner

from pystorm_source.cli.main import app

BOLTS = """
from {library} import Bolt

class CountBolt(Bolt):
    outputs = ["word", "count"]
    def process(self, tup):
        self.emit([tup.values.word, 1])
"""
SPOUTS = """
from pystorm_source.spouts import MemorySpout
from {library}.spout import Spout
"""
TOPOLOGY = """
from {library} import Grouping, Topology

from bolts.counting import CountBolt
from spouts.words import MemorySpout

class WordCount(Topology):
    words = MemorySpout.spec(fields=["word string"], rows=[["cow"], ["dog"]])
    counts = CountBolt.spec(inputs={{words: Grouping.fields("word")}}, par=2)
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    """``project(library)`` makes a project in the working folder; what was imported from it is forgotten later."""

    def make(library="pystorm_source"):
        (tmp_path / "config.json").write_text('{"topology_specs": "topologies/", "envs": {}}')
        for name, text in {
            "src/bolts/__init__.py": "",
            "src/bolts/counting.py": BOLTS,
            "src/spouts/__init__.py": "",
            "src/spouts/words.py": SPOUTS,
            "topologies/wordcount.py": TOPOLOGY,
        }.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text.format(library=library))
        return tmp_path

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield make
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def run(*arguments):
    return CliRunner().invoke(app, [str(each) for each in arguments])


def refused(*arguments):
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    (line,) = result.stderr.splitlines()
    return line


def test_run_draw_and_check_take_the_file(project):
    project()
    done = run("run", "topologies/wordcount.py", "--once", "--json", "--rows", "5")
    assert sorted(json.loads(done.stdout)["rows"]["counts.default"]) == [["cow", 1], ["dog", 1]]
    assert "bolt counts (CountBolt, 2 tasks)" in run("draw", "topologies/wordcount.py").stdout
    assert (
        "ok    topology               WordCount: 2 components, 3 tasks"
        in run("check", "topologies/wordcount.py").stdout
    )


def test_the_project_may_lie_elsewhere(project, monkeypatch, tmp_path_factory):
    folder = project()
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert "bolt counts" in run("draw", folder / "topologies" / "wordcount.py").stdout


def test_imports_by_way_of_src(project):
    folder = project()
    path = folder / "topologies" / "wordcount.py"
    path.write_text(path.read_text().replace("from bolts.", "from src.bolts."))
    assert "bolt counts" in run("draw", "topologies/wordcount.py").stdout


def test_a_topology_may_be_called_as_a_module_that_it_imports(project):
    folder = project()
    (folder / "topologies" / "wordcount.py").rename(folder / "topologies" / "bolts.py")
    assert "bolt counts" in run("draw", "topologies/bolts.py").stdout


def test_a_file_of_a_package_may_import_relatively(project):
    folder = project()
    (folder / "topologies" / "__init__.py").touch()
    (folder / "topologies" / "again.py").write_text("from .wordcount import WordCount\n")
    assert "bolt counts" in run("draw", "topologies/again.py").stdout


def test_of_several_topologies_one_is_named(project):
    folder = project()
    with (folder / "topologies" / "wordcount.py").open("a") as file:
        file.write("\nclass Wide(WordCount):\n    counts = CountBolt.spec(inputs=[WordCount.words], par=64)\n")
    line = refused("draw", "topologies/wordcount.py")
    assert "WordCount, Wide; name one, such as topologies/wordcount.py:WordCount. Given: " in line
    assert "64 tasks" in run("draw", "topologies/wordcount.py:Wide").stdout
    line = refused("draw", "topologies/wordcount.py:Narrow")
    assert "no Topology 'Narrow'; it has: WordCount, Wide. Given: 'topologies/wordcount.py:Narrow'" in line


def test_a_file_that_is_not_there(project):
    project()
    line = refused("run", "topologies/wordcuont.py")
    assert "there is no such file: a topology is PACKAGE.MODULE:TOPOLOGY, FILE.py or FILE.py:TOPOLOGY" in line
    assert line.endswith("Given: 'topologies/wordcuont.py'")


@pytest.mark.parametrize(("name", "found"), [("Count", "none"), ("", "none")])
def test_a_file_without_a_topology(project, name, found):
    project()
    assert f": {found}" in refused("draw", "src/bolts/counting.py" + (f":{name}" if name else ""))


@pytest.mark.parametrize("command", ["run", "draw"])
def test_streamparse_is_not_needed(project, command):
    """The line of the user's that imports it, and the three ways out."""
    project("streamparse")
    line = refused(command, "topologies/wordcount.py")
    assert line.startswith("error: [PYSTORM_PACKAGE_MISSING] No module named 'streamparse', and none is needed. File ")
    assert 'topologies/wordcount.py", line 2, in <module>: from streamparse import Grouping, Topology. Say ' in line
    for remedy in ("`from pystorm_source import ...`", "compat.install()", "`pystorm-source migrate .`"):
        assert remedy in line
    assert line.endswith("Given: 'topologies/wordcount.py'")


def test_streamparse_imported_by_a_bolt_or_by_name(project):
    folder = project()
    (folder / "src" / "bolts" / "counting.py").write_text(BOLTS.format(library="pystorm.bolt"))
    assert 'src/bolts/counting.py", line 2, in <module>: from pystorm.bolt import Bolt' in refused(
        "draw", "topologies/wordcount.py"
    )
    sys.path.insert(0, str(folder / "src"))
    line = refused("draw", "bolts.counting:CountBolt")
    assert 'src/bolts/counting.py", line 2' in line and "pystorm-source migrate" in line
    checked = run("check", "topologies/wordcount.py")
    assert checked.exit_code == 1 and 'src/bolts/counting.py", line 2' in checked.stdout


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import no_such_package\n", 'counting.py", line 1, in <module>: import no_such_package. Install the package'),
        ("print 'python 2'\n", "counting.py\", line 1: print 'python 2'. Correct that line"),
        ("x = 1\ny = x / 0\n", 'counting.py", line 2, in <module>: y = x / 0. Correct that line'),
        ("raise SystemExit\n", 'counting.py", line 1, in <module>: raise SystemExit. Correct that line'),
    ],
)
def test_a_file_that_cannot_be_imported(project, text, words):
    folder = project()
    (folder / "src" / "bolts" / "counting.py").write_text(text)
    line = refused("run", "topologies/wordcount.py")
    assert words in line and line.startswith("error: [PYSTORM_") and line.endswith("Given: 'topologies/wordcount.py'")
