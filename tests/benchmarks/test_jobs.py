"""The rung ``jobs``: what it counts, and that wrong rows and programs that fail do not become figures."""

import json
import subprocess
import sys
from contextlib import contextmanager
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from benchmarks.harness.peers import PROGRAMS
from benchmarks.harness.processor import processor_seconds
from benchmarks.jobs.logs import LOGS
from benchmarks.jobs.measuring import Load, Loads, lines_of_code, measured
from benchmarks.jobs.process import Failed, Processes

BY_HAND = next(side for side in LOGS.sides if side.name == "by-hand")


def test_lines_of_code_are_without_comments_and_docstrings(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        '"""What it\ndoes."""\n\n# why\nimport os\n\n\ndef run():\n    """Runs."""\n    return f(\n        os)\n'
    )
    assert lines_of_code(program) == 4


@pytest.fixture
def processes():
    with Processes(quick=True) as running:
        yield running


def test_a_log_that_is_rotated_while_it_is_read_gives_each_line_once(tmp_path, processes):
    with LOGS.loads(tmp_path, True) as loads:
        took = measured("logs", BY_HAND, loads, processes)
    assert took.rows_per_second > 0
    assert took.rows_per_core_second > 0
    assert took.wrong is None


def other_rows(tmp_path):
    with LOGS.loads(tmp_path, True) as loads:
        few = Load(loads.all.rows, loads.few.options, loads.all.check)
    return Loads(few, few, few)


def test_wrong_rows_are_no_figure(tmp_path, processes):
    with pytest.raises(RuntimeError, match=r"logs, by-hand: rows, lines and milliseconds are \(90, 90, "):
        measured("logs", BY_HAND, other_rows(tmp_path), processes)


def test_wrong_rows_of_a_side_that_loses_some_are_noted(tmp_path, processes):
    took = measured("logs", BY_HAND._replace(loses=True), other_rows(tmp_path), processes)
    assert took.wrong is not None
    assert took.wrong.startswith("rows, lines and milliseconds are (90, 90, ")


def test_a_program_that_fails_says_why(tmp_path, processes):
    load = Load(1, lambda work: {"logs": str(work / "none"), "done": str(work)}, lambda out: None)
    with pytest.raises(Failed, match=r"FileNotFoundError: .*none"):
        measured("logs", BY_HAND, Loads(load, load, load), processes)


class FasterWithMore:
    """Processes whose first runs take longer than the others, as a JVM's do on a busy machine."""

    quick = False

    def __init__(self):
        self.took = [{"seconds": seconds, "processor": seconds} for seconds in (9.0, 8.0, 7.0)]

    @contextmanager
    def of(self, kind):
        yield self

    def does(self, program, options):
        return self.took.pop(0)


def test_a_side_whose_many_rows_take_no_longer_than_few_has_no_figure():
    load = Load(1, lambda work: {}, lambda out: None)
    with pytest.raises(Failed, match="1 rows take no longer than 1"):
        measured("logs", BY_HAND, Loads(load, load, load), FasterWithMore())


def test_processor_time_includes_children_that_have_ended():
    before = processor_seconds()
    busy = "import time\nwhile time.process_time() < 0.5: pass"
    subprocess.run([sys.executable, "-c", busy], check=True)
    assert processor_seconds() - before >= 0.4


@pytest.fixture
def shop():
    command = [sys.executable, str(PROGRAMS / "http_server.py"), "prices"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        yield f"http://127.0.0.1:{server.stdout.readline().split()[0]}"
        server.stdin.close()


def test_some_prices_are_told_at_the_second_call_and_calls_are_counted(shop):
    def price(number):
        with urlopen(f"{shop}/{number}", timeout=20) as answer:
            return json.load(answer)["price"]

    with pytest.raises(HTTPError, match="503"):
        price(7)
    assert [price(7), price(8)] == [433, 352]
    with urlopen(f"{shop}/calls", timeout=20) as answer:
        assert json.load(answer)["most"] in (1, 2, 3)  # fewer where a call took a second
