"""What the shell completes: as the functions that typer calls, and typed into a real bash."""

import contextlib
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pystorm_source.cli.completion import options, topologies
from pystorm_source.cli.main import app

MODULE = """
    print("imported")
    from pystorm_source import Bolt, Topology
    from pystorm_source.spouts import RateSpout

    class Words(Topology):
        beats = RateSpout.spec()

    class Wide(Words):
        pass

    class NoTopology(Bolt):
        pass
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "__init__.py").touch()
    (tmp_path / "shop" / "orders.py").write_text(textwrap.dedent(MODULE))
    (tmp_path / "word-count").mkdir()
    (tmp_path / "word-count" / "lines.py").write_text("import streamparse\nclass Lines(streamparse.Topology): pass\n")
    (tmp_path / "broken.py").write_text("class Topology(:\n")
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "hidden.py").write_text("class Hidden(Topology): pass\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    for name in ("shop", "shop.orders"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("begun", "found"),
    [
        ("", ["shop.orders:Wide", "shop.orders:Words", "word-count/lines.py:Lines"]),
        ("shop", ["shop.orders:Wide", "shop.orders:Words"]),
        ("shop.orders:Wo", ["shop.orders:Words"]),
        ("shop/", ["shop/orders.py:Wide", "shop/orders.py:Words"]),
        ("./shop/orders.py:Wi", ["./shop/orders.py:Wide"]),
        ("shop.orders:X", []),
    ],
)
def test_topologies_of_the_folder_are_found_without_importing_them(begun, found, capsys):
    assert topologies(begun) == found
    assert capsys.readouterr().out == "" and "shop.orders" not in sys.modules


def test_keys_are_those_of_the_engine_and_of_the_spouts_of_the_topology(monkeypatch, capsys):
    monkeypatch.setenv("COMP_WORDS", "pystorm-source\nrun\nshop.orders:Words\n-o\n")
    keys = options("")
    assert {"rowsPerSecond=", "topology.scheduler=", "topology.max.spout.pending="} <= set(keys)
    assert "files.header=" not in keys and "kafka.*=" not in keys
    assert capsys.readouterr().out == ""  # what a module prints is no candidate


def test_keys_without_a_topology_are_those_of_all_ready_made_spouts(monkeypatch):
    monkeypatch.setenv("COMP_WORDS", "pystorm-source\nrun\nshop.nothing:Words\n-o\n")
    assert {"rowsPerSecond=", "files.header=", "topology.scheduler="} <= set(options(""))


@pytest.mark.parametrize(
    ("begun", "found"),
    [
        ("topology.debug=", ["topology.debug=true", "topology.debug=false"]),
        ("topology.scheduler=t", ["topology.scheduler=threads"]),
        ("rowsPer", ["rowsPerSecond=", "rowsPerSecond=1"]),
        ("path=", []),
        ("my.key=", []),
        ("my.ke", []),
    ],
)
def test_values_are_the_words_that_are_allowed_or_the_default(monkeypatch, begun, found):
    monkeypatch.setenv("COMP_WORDS", "")
    assert options(begun) == found


@pytest.mark.parametrize("command", [[], ["run"], ["draw"], ["check"], ["quickstart"], ["demo"]])
def test_h_is_help(command):
    short, long = (CliRunner().invoke(app, [*command, flag]) for flag in ("-h", "--help"))
    assert short.exit_code == long.exit_code == 0
    assert short.stdout == long.stdout and "Usage:" in short.stdout


# --- a real bash ------------------------------------------------------------------------------------------------------

needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
PROMPT = "ready> "


class Bash:
    """An interactive bash on a terminal of its own, with the completion that ``--install-completion`` has set up."""

    def __init__(self, home: Path):
        self._ours, theirs = pty.openpty()
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("COMP_")},
            "HOME": str(home),
            "TERM": "dumb",
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        }
        self._process = subprocess.Popen(
            ["bash", "--norc", "-i"],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=environment,
            start_new_session=True,
        )
        os.close(theirs)
        # Order: the prompt in two parts, so that the echo of this line is not taken for it.
        self.type(f"stty cols 200; bind 'set bell-style none'; source ~/.bashrc; PS1='rea''{PROMPT[3:]}'\n", PROMPT)

    def type(self, keys: str, expected: str) -> str:
        """Types; the text that has appeared once ``expected`` is in it."""
        os.write(self._ours, keys.encode())
        shown, end = "", time.monotonic() + 60
        while not re.search(expected, shown):
            assert time.monotonic() < end, shown
            if select.select([self._ours], [], [], 1)[0]:
                shown += os.read(self._ours, 65536).decode()
        return shown

    def close(self):
        self._process.terminate()
        with contextlib.suppress(OSError):
            os.close(self._ours)
        self._process.kill()
        self._process.wait(timeout=30)


@pytest.mark.campaign
@needs_bash
def test_bash_completes_topologies_keys_and_values(folder):
    home = folder / "home"
    home.mkdir()
    command = [sys.executable, "-m", "pystorm_source", "--install-completion", "bash"]
    environment = {**os.environ, "HOME": str(home), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    assert "completion installed" in subprocess.run(command, capture_output=True, text=True, env=environment).stdout
    bash = Bash(home)
    try:
        bash.type("pystorm-source ru\t", "run $")
        bash.type("sho\t", "^shop.orders:W$")
        bash.type("o\t", "^ords $")
        bash.type("-o rowsP\t", "-o rowsPerSecond=$")
        bash.type("\x15:\n", PROMPT)  # a new line: a long one scrolls
        bash.type("pystorm-source run --option=topology.deb\t", "--option=topology.debug=$")
        bash.type("t\t", "^true $")
    finally:
        bash.close()
