"""Wrong, missing and odd arguments, terminals and pipes: an answer of a few lines, a status, never a traceback."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from pystorm_source.cli.command_line import run
from pystorm_source.cli.main import app

MODULE = """
    from pystorm_source import Bolt, Topology
    from pystorm_source.spouts import MemorySpout

    class Sink(Bolt):
        def process(self, tup):
            pass

    class Silent(Topology):
        lines = MemorySpout.spec(fields=["line string"], rows=[["a"]])
        sink = Sink.spec(inputs=[lines])

    class Many(Topology):
        lines = MemorySpout.spec(fields=["line string"], rows=[["a"]] * 5000)

    class Empty(Topology):
        pass
"""


@pytest.fixture(autouse=True)
def folder(tmp_path):
    (tmp_path / "shop.py").write_text(textwrap.dedent(MODULE))
    (tmp_path / "plain.py").write_text("x = 1\n")
    (tmp_path / "sleeps.py").write_text("import time\nprint('asleep', flush=True)\ntime.sleep(600)\n")
    (tmp_path / "folder").mkdir()
    return tmp_path


def ask(where, *arguments, **how):
    how = {"stdout": subprocess.PIPE, **how, "env": {**os.environ, **how.get("env", {})}}
    command = [sys.executable, "-m", "pystorm_source", *arguments]
    return subprocess.run(command, cwd=where, stderr=subprocess.PIPE, text=True, timeout=100, **how)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["runn"], ["No such command 'runn'", "`pystorm-source -h` shows"]),
        (["--nope"], ["--nope", "`pystorm-source -h` shows"]),
        (["run"], ["Missing argument 'TOPOLOGY'", "`pystorm-source run -h` shows"]),
        (["draw"], ["Missing argument 'TOPOLOGY'", "`pystorm-source draw -h` shows"]),
        (["quickstart"], ["Missing argument 'NAME'", "`pystorm-source quickstart -h` shows"]),
        (["run", "shop:Many", "--rows", "x"], ["Invalid value for '--rows'", "Given: pystorm-source run shop:Many"]),
        (["run", "shop:Many", "--rows", "-1"], ["Invalid value for '--rows'", "Given: pystorm-source run shop:Many"]),
        (["run", "shop:Many", "-o"], ["'-o' requires an argument", "-h` shows"]),
        (["run", "shop:Many", "-o", "a"], ["-o takes KEY=VALUE", "Given: 'a'"]),
        (["run", "shop:Many", "--for", "1"], ["'--for'", "'15m'", "Given: '1'"]),
        (["draw", "shop:Many", "more"], ["unexpected extra argument", "`pystorm-source draw -h` shows"]),
        (["draw", "shop:Many", "--format", "gif"], ["'gif' is not one of", "'pdf'", "`pystorm-source draw -h` shows"]),
        (["draw", "shop:Many", "--output", "folder"], ["Is a directory", "Given: 'folder'"]),
        (["run", "shop"], ["FILE.py:CLASS", "shop:Many, shop:Silent", "Given: 'shop'"]),
        (["run", "folder"], ["FILE.py:CLASS", "shop:Many, shop:Silent", "Given: 'folder'"]),
        (["draw", ""], ["FILE.py:CLASS", "Given: ''"]),
        (["run", ":Many"], ["FILE.py:CLASS", "Given: ':Many'"]),
        (["run", "nothing:Many"], ["module 'nothing' cannot be imported", "Given: 'nothing:Many'"]),
        (["run", "nothing.py"], ["no such file", "Given: 'nothing.py'"]),
        (["run", "plain.py"], ["plain.py", "none", "Given: 'plain.py'"]),
        (["run", "shop:Empty"], ["a topology needs components", "Empty"]),
        (["quickstart", "folder"], ["there already", "Given: 'folder'"]),
    ],
    ids=" ".join,
)
def test_a_wrong_line_is_answered_by_one_error_with_a_remedy(folder, arguments, words, monkeypatch, capsys):
    """In this process: the tests below start one for what is a process's own, status, pipes and signals."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    monkeypatch.setattr(sys, "argv", ["pystorm-source", *arguments])
    status = run(app)
    for module in ("shop", "plain"):
        sys.modules.pop(module, None)
    printed = capsys.readouterr()
    assert status == 2
    assert printed.out == ""
    assert printed.err.startswith("error: ") and len(printed.err.splitlines()) <= 3
    assert [word for word in words if word not in printed.err] == []
    assert "Given: " in printed.err and "Traceback" not in printed.err


def test_a_folder_without_topologies_says_where_to_go(folder):
    done = ask(folder / "folder", "run", "words")
    assert done.returncode == 2 and "is none: go to that of your project" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_topology_without_an_open_stream_runs_and_says_so(folder):
    done = ask(folder, "run", "shop:Silent", "--rows", "3")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("ended: all input is read; no stream leaves this topology, backlog 0 offsets\n")


LINES = [["draw", "shop:Many"], ["run", "shop:Many", "--rows", "5000"], ["run", "shop:Many", "--json"], ["run", "-h"]]


@pytest.mark.parametrize("arguments", LINES, ids=" ".join)
def test_a_reader_that_goes_away_ends_it_quietly(folder, arguments):
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = ask(folder, *arguments, stdout=writing)
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("arguments", LINES, ids=" ".join)
def test_a_full_disk_is_said_in_one_line(folder, arguments):
    with open("/dev/full", "w") as full:
        done = ask(folder, *arguments, stdout=full)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("error: stdout cannot be written: No space left on device")


def test_a_terminal_without_unicode_gets_what_it_can_show(folder):
    done = ask(folder, "run", "shop:Many", env={"PYTHONIOENCODING": "ascii", "LC_ALL": "C"})
    assert (done.returncode, done.stderr) == (0, "")
    assert "5,000" in done.stdout and done.stdout.isascii()


@pytest.mark.parametrize("columns", ["20", "40"])
def test_a_pipe_gets_whole_lines_and_no_colours(folder, columns):
    done = ask(folder, "run", "shop:Many", env={"COLUMNS": columns})
    assert done.returncode == 0 and "\x1b" not in done.stdout
    assert "ended: all input is read; 5,000 rows out of lines.default, backlog 0 offsets" in done.stdout.splitlines()


def test_ctrl_c_during_the_import_of_a_topology(folder):
    command = [sys.executable, "-m", "pystorm_source", "run", "sleeps:Many"]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "asleep\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130 and "Traceback" not in err
