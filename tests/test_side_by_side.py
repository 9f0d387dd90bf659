"""Tests in several processes: quiet ones run alone, groups stay together, and what is left out or skipped is said."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("xdist", reason="requirements/dev.txt has pytest-xdist")
ROOT = Path(__file__).resolve().parents[1]

INI = """
[pytest]
markers =
    campaign: long
    quiet: alone
addopts = -m "not campaign" -p no:cacheprovider
"""

TIMED = """
import time
from pathlib import Path
import pytest

@pytest.fixture(autouse=True)
def written():
    began = time.monotonic()
    yield
    with open(Path(__file__).with_name("times"), "a") as file:
        file.write(f"{began} {time.monotonic()} {__name__[-5:]}\\n")
"""


def run(folder: Path, *arguments: str, shell: str = "", status: int = 0) -> str:
    """What pytest prints in that folder, with the hooks of these tests."""
    (folder / "pytest.ini").write_text(INI)
    if not (folder / "conftest.py").exists():
        (folder / "conftest.py").write_text("from tests.conftest import *\n")
    # Of the plugins only the one that matters: to import them all takes longer than these tests.
    command = [sys.executable, "-m", "pytest", "-q", "-p", "xdist.plugin", "--rootdir", str(folder), *arguments]
    if shell:
        command = ["sh", "-c", f'{shell}; exec "$@"', "sh", *command]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)  # fmt: skip
    assert done.returncode == status, done.stdout
    return done.stdout


def two_processes(folder: Path, status: int = 0) -> str:
    return run(folder, "-n", "2", "--dist", "loadfile", "--no-loadscope-reorder", status=status)


def test_nothing_runs_beside_a_quiet_test(tmp_path):
    (tmp_path / "test_quiet.py").write_text(
        TIMED + "@pytest.mark.quiet\n@pytest.mark.parametrize('n', range(5))\ndef test_it(n):\n    time.sleep(0.02)\n"
    )
    (tmp_path / "test_other.py").write_text(
        TIMED + "@pytest.mark.parametrize('n', range(40))\ndef test_it(n):\n    time.sleep(0.005)\n"
    )
    assert "45 passed" in two_processes(tmp_path)
    times = [line.split() for line in (tmp_path / "times").read_text().splitlines()]
    quiet = [(float(began), float(ended)) for began, ended, name in times if name == "quiet"]
    others = [(float(began), float(ended)) for began, ended, name in times if name == "other"]
    assert (len(quiet), len(others)) == (5, 40)
    assert not [pair for pair in quiet for other in others if other[0] < pair[1] and pair[0] < other[1]]
    # Neither waits until the end of the other.
    assert min(others) < max(quiet) and min(quiet) < max(others)


def test_a_group_is_one_process_and_starts_first(tmp_path):
    (tmp_path / "conftest.py").write_text(
        "import os, pytest\nfrom pathlib import Path\nfrom tests.conftest import *\n"
        "@pytest.fixture(scope='session')\ndef spark():\n"
        f"    open({str(tmp_path / 'started')!r}, 'a').write(f'{{os.getpid()}}\\n')\n"
    )
    for name in "abc":
        (tmp_path / f"test_{name}.py").write_text("def test_plain():\n    pass\ndef test_session(spark):\n    pass\n")
    assert "6 passed" in two_processes(tmp_path)
    assert len((tmp_path / "started").read_text().splitlines()) == 1


def test_campaigns_that_are_left_out_are_counted_in_one_line(tmp_path):
    (tmp_path / "test_long.py").write_text(
        "import pytest\ndef test_few():\n    pass\n"
        "@pytest.mark.campaign\n@pytest.mark.parametrize('n', range(9))\ndef test_many(n):\n    pass\n"
        "@pytest.mark.campaign\ndef test_more():\n    pass\n"
    )
    line = "Left out: 2 long campaigns, which .ci/run runs. To run them: make test ARGS='-m campaign';"
    assert run(tmp_path).count(line) == 1
    assert two_processes(tmp_path).count(line) == 1
    assert "Left out" not in run(tmp_path, "-m", "campaign")
    assert "Left out" not in run(tmp_path, "-k", "few")


@pytest.mark.parametrize("processes", ["0", "2"])
def test_one_line_says_what_to_install_for_the_tests_that_were_skipped(tmp_path, processes):
    (tmp_path / "test_needs.py").write_text(
        "import pytest\nfrom tests.missing import missing\n"
        "@pytest.mark.parametrize('name', ['promtool', 'prometheus'])\n"
        "def test_rules(name): missing(name, 'prometheus')\n"
        "@pytest.fixture\ndef page(): missing('chromium', 'chromium')\n"
        "def test_page(page): pass\n"
        "def test_of_another_system(): pytest.skip('no fork')\n"
    )
    printed = run(tmp_path, "-n", processes)
    (line,) = [line for line in printed.splitlines() if "apt-get install" in line and line.startswith("Skipped")]
    assert line.startswith("Skipped: 3 tests need programs that this machine lacks. To run all: ")
    assert line.endswith("apt-get install chromium prometheus")
    assert "Skipped" not in run(tmp_path, "-k", "another")


@pytest.mark.parametrize("processes", ["0", "2"])
def test_children_take_ctrl_c_where_the_shell_ignores_it(tmp_path, processes):
    (tmp_path / "test_child.py").write_text(
        "import subprocess, sys\ndef test_it():\n"
        "    child = 'import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)'\n"
        "    assert subprocess.run([sys.executable, '-c', child], capture_output=True, text=True).stdout == 'True\\n'\n"
    )
    assert signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
    assert "1 passed" in run(tmp_path, "-n", processes, shell="trap '' INT")


@pytest.mark.parametrize("name", ["test_before", "test_zlast"])
def test_a_process_that_dies_fails_its_test_once_and_the_rest_runs(tmp_path, name):
    for n in range(6):
        (tmp_path / f"test_other{n}.py").write_text(
            TIMED + "@pytest.mark.parametrize('n', range(4))\ndef test_it(n):\n    time.sleep(0.01)\n"
        )
    (tmp_path / f"{name}.py").write_text(
        "import os, signal\ndef test_a(): pass\ndef test_dies(): os.kill(os.getpid(), signal.SIGKILL)\n"
        "def test_b(): pass\n"
    )
    assert "1 failed, 26 passed" in two_processes(tmp_path, status=1)
