"""``pystorm-source run``, in this process and as the process that a user starts."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import textwrap

import pytest
from typer.testing import CliRunner

from pystorm_source import PartitionedSpout, Spout, Topology
from pystorm_source.cli.displays.run import TableDisplay
from pystorm_source.cli.main import app
from pystorm_source.cli.run import config_of, follow
from pystorm_source.clock import ManualClock
from pystorm_source.errors import OptionError
from pystorm_source.plan import compile_plan
from pystorm_source.spouts import RateSpout
from pystorm_source.worker.local_run import LocalRun

MODULE = """
    import time
    from pystorm_source import *
    from pystorm_source.spouts import MemorySpout, FilesSpout

    class Split(Bolt):
        outputs = ["word string"]
        def process(self, tup):
            for word in tup.values.line.split():
                self.emit([word])

    class Picky(Split):
        def process(self, tup):
            raise ValueError("no such line")

    class Endless(Spout):
        outputs = ["line string"]
        def next_tuple(self):
            self.emit(["a b"])

    class Shown(Split):
        outputs = ["conf string"]
        def initialize(self, conf, context):
            self.conf = conf
        def process(self, tup):
            self.emit([repr(self.conf.get("a.key"))])

    class Chatty(Split):
        def process(self, tup):
            print("a line of mine")

    class Printing(Topology):
        lines = MemorySpout.spec(fields=["line string"], rows=[["a"]])
        words = Chatty.spec(inputs=[lines])

    class Words(Topology):
        lines = MemorySpout.spec(fields=["line string"], rows=[["the cow"], ["the moon"]])
        words = Split.spec(inputs=[lines], par={"small": 1, "large": 3})

    class Conf(Topology):
        lines = MemorySpout.spec(fields=["line string"], rows=[["x"]])
        shown = Shown.spec(inputs=[lines])

    class Needy(MemorySpout):
        outputs = ["line string"]
        rows = [["a"]]
        def initialize(self, conf, context):
            super().initialize(conf, context)
            self.folder = conf["folder"]

    class Unconfigured(Topology):
        lines = Needy.spec()

    class Failing(Topology):
        lines = MemorySpout.spec(fields=["line string"], rows=[["a"], ["b"]])
        words = Picky.spec(inputs=[lines])

    class Plain(Topology):
        config = {"topology.environment": "small"}
        lines = Endless.spec()
        words = Split.spec(inputs=[lines])

    class Meeting(Bolt):
        outputs = ["n long"]
        def initialize(self, conf, context):
            self.seen = set()
        def process(self, tup):
            self.seen.add(tup.component)
            self.emit([len(self.seen)])

    class Met(Topology):
        ones = MemorySpout.spec(fields=["line string"], rows=[["a"]])
        others = MemorySpout.spec(fields=["line string"], rows=[["a"]])
        met = Meeting.spec(inputs={ones: Grouping.fields("line"), others: Grouping.fields("line")})

    class Odd(Topology):
        class Values(MemorySpout):
            outputs = ["a", "b", "c"]
            rows = [(b"x", float("nan"), {(1, 2): 3})]
        values = Values.spec()

    class Late(Split):
        def process(self, tup):
            time.sleep(0.05)
            super().process(tup)

    class Stuck(Split):
        def process(self, tup):
            time.sleep(600)

    class Silent(MemorySpout):
        outputs = ["line string"]
        def snapshot(self, known, state):
            time.sleep(600)

    class Slow(Topology):
        lines = MemorySpout.spec(fields=["line string"], rows=[["a"]] * 2000)
        words = Late.spec(inputs=[lines])

    class Hanging(Topology):
        lines = MemorySpout.spec(fields=["line string"], rows=[["a"]])
        words = Stuck.spec(inputs=[lines])

    class Unasked(Topology):
        lines = Silent.spec()

    class Texts(Split):
        outputs = ["status int"]
        def process(self, tup):
            self.emit(["404"])

    class Mistyped(Topology):
        lines = MemorySpout.spec(fields=["line string"], rows=[["a"]])
        statuses = Texts.spec(inputs=[lines])

    class Typo(Split):
        outputs = ["path strng"]

    class Misspelled(Topology):
        lines = MemorySpout.spec(fields=["line string"], rows=[["a"]])
        paths = Typo.spec(inputs=[lines])

    class Followed(Topology):
        lines = FilesSpout.spec()
        words = Split.spec(inputs=[lines])
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The working folder, with a module of topologies."""
    name = f"run_here_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(textwrap.dedent(MODULE))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return name


def run(*arguments):
    return CliRunner().invoke(app, ["run", *arguments])


def answer(*arguments):
    result = run(*arguments, "--json")
    (line,) = result.stdout.splitlines()
    return result.exit_code, json.loads(line)


def test_once_reads_all_and_ends(folder):
    status, found = answer(f"{folder}:Words", "--once", "-e", "large", "--rows", "4")
    assert status == 0
    assert (found["topology"], found["micro_batches"], found["failure"]) == ("Words", 1, None)
    assert found["components"]["lines"]["emitted"] == 2
    words = found["components"]["words"]
    assert (words["emitted"], words["executed"], words["acked"], words["failed"], words["errors"]) == (4, 2, 2, 0, 0)
    assert words["queue_high_mark"] >= 1 and words["per_second"] > 0
    assert sorted(found["rows"]["words.default"]) == [["cow"], ["moon"], ["the"], ["the"]]


def test_the_table_and_the_rows(folder):
    result = run(f"{folder}:Words", "--once", "--environment", "small", "--rows", "2")
    assert result.exit_code == 0
    assert re.match(r"Words, \d+\.\d s, 1 micro-batch\b", result.stdout)
    (words,) = [line for line in result.stdout.splitlines() if line.startswith("│ words")]
    cells = [cell.strip() for cell in words.strip("│").split("│")]
    assert cells[:5] == ["words", "4", "2", "2", "0"] and cells[-1] == "0"
    assert result.stdout.endswith(
        "\nwords.default:\n  ('the',)\n  ('cow',)\n"
        "\nended: all input is read; 4 rows out of words.default, backlog 0 offsets\n"
    )


@pytest.mark.parametrize(
    ("given", "seen"), [("7", "7"), ("true", "True"), ("text", "'text'"), ('"7"', "'7'"), ("a=b", "'a=b'")]
)
def test_options_are_json_or_text(folder, given, seen):
    _, found = answer(f"{folder}:Conf", "--once", "-o", f"a.key={given}", "--rows", "1")
    assert found["rows"]["shown.default"] == [[seen]]


@pytest.mark.parametrize(
    ("topology", "status", "words"),
    [
        ("Mistyped", 1, ("component 'statuses'", "'status'", "'404'")),
        ("Misspelled", 2, ("PYSTORM_INVALID_TYPE", "strng")),
    ],
)
def test_what_spark_would_refuse_is_refused_here(folder, topology, status, words):
    result = run(f"{folder}:{topology}", "--once")
    assert result.exit_code == status
    assert [word for word in words if word not in result.output] == []
    assert "Traceback" not in result.output.split("remedy:")[0]


def test_a_failure_is_named_and_exits_1(folder):
    result = run(f"{folder}:Failing", "--once")
    assert result.exit_code == 1
    what, place, line, remedy, *frames = result.stderr[result.stderr.index("error: ") :].splitlines()
    assert what == "error: [PYSTORM_TUPLE_FAILED] component 'words', task 2: process() raised ValueError: no such line"
    assert place == "  input:  tuple ('a',) of lines.default; offset 0"
    assert re.fullmatch(r'  line:   File ".*/\w+\.py", line 14, in process: raise ValueError\("no such line"\)', line)
    assert remedy == (
        "  remedy: correct the component and run it again; or go on without such tuples: exit_on_exception = False in "
        "the bolt, and topology.dead.letter=stream or drop"
    )
    assert frames[0] == "Traceback (most recent call last):" and frames[-1] == "ValueError: no such line"
    assert len([each for each in frames if each.startswith("  File ")]) == 1
    assert "│ words" in result.stdout
    status, found = answer(f"{folder}:Failing", "--once")
    assert status == 1 and "no such line" in found["failure"]


def test_a_key_that_is_not_given_is_asked_for(folder):
    result = run(f"{folder}:Unconfigured", "--once")
    assert result.exit_code == 1
    assert "initialize() raised KeyError: 'folder'" in result.stderr
    remedy = "  remedy: give it by -o folder=..., or have the component do without: conf.get('folder', ...)"
    assert remedy in result.stderr.splitlines()
    assert run(f"{folder}:Unconfigured", "--once", "-o", "folder=x").exit_code == 0


def test_a_path_that_no_file_matches_is_said(folder, tmp_path, caplog):
    result = run(f"{folder}:Followed", "--once", "-o", "path=absent/*.log")
    assert f"no file matches '{tmp_path}/absent/*.log' on " in caplog.text
    assert "ended: there was nothing to read; 0 rows out of words.default" in result.stdout


def test_a_module_that_is_misspelt_is_told_with_the_nearest(folder):
    result = run(f"{folder[:-1]}:Words")
    assert result.exit_code == 2
    assert f"did you mean '{folder}:Words'?" in result.stderr and "Traceback" not in result.output


def test_spouts_are_apart_as_in_spark_unless_they_are_to_run_together(folder):
    _, found = answer(f"{folder}:Met", "--once", "--rows", "2", "-o", "topology.spouts.independent=true")
    assert found["rows"]["met.default"] == [[1], [1]]
    _, found = answer(f"{folder}:Met", "--once", "--rows", "2", "--together")
    assert sorted(found["rows"]["met.default"]) == [[1], [2]]
    assert found["components"]["met"]["executed"] == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["Words", "--once"], "environment"),
        (["Met", "--once"], "bolt 'met' groups tuples of the spouts 'ones' and 'others' together"),
        (["Absent"], "has no Topology"),
        (["Conf", "--for", "soon"], "option '--for' is a number with"),
        (["Conf", "-o", "topology.debug"], "-o takes KEY=VALUE"),
        (["Conf", "-o", "topology.debgu=true"], "did you mean 'topology.debug'"),
        (["Followed", "--once"], "'path' is needed"),
        (["Followed", "-o", "pth=/data"], "unknown option 'pth': did you mean 'path'?"),
        (["Followed", "-o", "maxOffsetPerTrigger=1"], "did you mean 'maxOffsetsPerTrigger'?"),
        (["Followed", "-o", "maxOffsetsPerTrigger=1"], "is for a reader of Spark's"),
        (["Followed", "-o", "path=nowhere"], "[PYSTORM_INVALID_OPTION]"),
    ],
)
def test_what_is_wrong_is_said_without_a_traceback(folder, arguments, words):
    result = run(f"{folder}:{arguments[0]}", *arguments[1:])
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ") and words in result.stderr


def test_spouts_without_offsets_are_heard_until_the_time_is_over(folder):
    status, found = answer(f"{folder}:Plain", "--for", "300ms")
    assert status == 0
    assert 0.3 <= found["seconds"] < 30
    lines, words = found["components"]["lines"], found["components"]["words"]
    assert lines["emitted"] == words["executed"] > 100
    assert words["emitted"] == 2 * words["executed"]


def test_what_json_cannot_hold_is_shown_as_it_prints(folder):
    _, found = answer(f"{folder}:Odd", "--once", "--rows", "1")
    assert found["rows"]["values.default"] == [["b'x'", "nan", "{(1, 2): 3}"]]


def test_what_components_print_does_not_stand_before_the_json(folder):
    result = run(f"{folder}:Printing", "--once", "--json")
    assert json.loads(result.stdout)["components"]["words"]["executed"] == 1
    assert "a line of mine" in result.stderr
    assert "a line of mine" in run(f"{folder}:Printing", "--once").stdout


def test_a_rate_is_never_below_zero(folder):
    """Work that is worked out from a rate may come out a little less than it was."""
    clock = ManualClock(now=1000.0)
    display = TableDisplay(rate(clock, 1), clock)
    display._window = (0.0, [row._replace(rate=1e9) for row in display.table_rows()])
    clock.advance(3)
    display._window = (1.0, display._window[1])
    display._now()
    assert [str(value) for value in display._rates.values()] == ["0.0"]


def test_options_are_checked():
    assert config_of(["a=1", "topology.workers=2", "a=2"]) == {"a": 2, "topology.workers": 2}
    with pytest.raises(OptionError, match="Given: '=1'"):
        config_of(["=1"])


# --- following --------------------------------------------------------------------------------------------------------


class Beats:
    """Advances the clock a little at every beat."""

    def __init__(self, clock):
        self.clock = clock
        self.times = []

    def __call__(self):
        self.times.append(self.clock.now)
        self.clock.advance(0.1)


def rate(clock, rows_per_second):
    spout = RateSpout.spec(rows_per_second=rows_per_second, start_time=int(clock.now))
    plan = compile_plan(type("Made", (Topology,), {"rate": spout}))
    return LocalRun(plan, clock, captured=[("rate", "default")], component_clock=clock)


def test_a_partitioned_spout_is_followed_until_the_end():
    clock = ManualClock(now=1000.0)
    local = rate(clock, 10)
    follow(local, clock, end=1005.0, once=False, beat=Beats(clock))
    values = [value for _, value in local.rows["rate", "default"]]
    assert values == list(range(len(values))) and len(values) >= 47
    assert local.micro_batches > 5


class Tide(PartitionedSpout):
    """As many offsets as its class says; whether there may be more it does not say."""

    outputs = ["n"]
    high = 3

    def partitions(self):
        return ["0"]

    def latest(self, partition):
        return type(self).high

    def open(self, partition, start, end):
        self.offsets = iter(range(start, end))

    def next_tuple(self):
        for offset in self.offsets:
            return self.emit([offset], tup_id=offset)
        return False


def test_a_spout_that_never_grows_ends_the_run_after_a_while():
    clock = ManualClock()
    local = LocalRun(compile_plan(type("Made", (Topology,), {"tide": Tide.spec()})), clock)
    why = follow(local, clock, end=1000.0, once=False, beat=lambda: None)
    assert why == "all input is read: no spout had more for 5 s"
    assert 5.0 <= clock.now < 6.0


def test_a_spout_that_has_grown_is_waited_for(monkeypatch):
    monkeypatch.setattr(Tide, "high", 3)
    clock = ManualClock()
    local = LocalRun(compile_plan(type("Made", (Topology,), {"tide": Tide.spec()})), clock)

    def beat():
        if clock.now > 2.0:
            Tide.high = 4

    assert follow(local, clock, end=50.0, once=False, beat=beat) == "the time of --for is over"
    assert clock.now >= 50.0 and local.unread.grown == {"tide"}


def test_what_classes_say_goes_before_what_is_seen(monkeypatch):
    made = type("Made", (Topology,), {"tide": Tide.spec()})
    monkeypatch.setattr(Tide, "bounded", True)
    clock = ManualClock()
    assert follow(LocalRun(compile_plan(made), clock), clock, 50.0, False, lambda: None) == "all input is read"
    assert clock.now < 1.0
    monkeypatch.setattr(Tide, "bounded", False)
    assert follow(LocalRun(compile_plan(made), clock), clock, 50.0, False, lambda: None).startswith("the time of")


def test_a_finite_spout_ends_the_run_with_a_summary(folder):
    result = run(f"{folder}:Words", "-e", "small")
    assert result.exit_code == 0
    assert result.stdout.endswith("\nended: all input is read; 4 rows out of words.default, backlog 0 offsets\n")
    _, found = answer(f"{folder}:Words", "-e", "small")
    assert (found["ended"], found["backlog"], found["rows_out"]) == ("all input is read", 0, {"words.default": 4})


def test_once_ends_with_what_was_there():
    clock = ManualClock(now=1000.0)
    local = rate(clock, 1)
    clock.advance(9)
    follow(local, clock, end=float("inf"), once=True, beat=lambda: None)
    assert [value for _, value in local.rows["rate", "default"]] == list(range(10))


class Endless(Spout):
    """Always has something."""

    outputs = ["n"]
    clock = ManualClock()

    def next_tuple(self):
        self.clock.advance(0.01)
        self.emit([1])


def test_once_with_a_spout_that_has_no_end_says_so_once(caplog):
    clock = Endless.clock = ManualClock()
    local = LocalRun(compile_plan(type("Made", (Topology,), {"one": Endless.spec(), "two": Endless.spec()})), clock)
    assert follow(local, clock, end=40.0, once=True, beat=lambda: None) == "the time of --for is over"
    (said,) = caplog.messages
    assert said.startswith("--once ends when 'one' and 'two' had nothing in a turn") and "Ctrl-C" in said


class Waiting(Spout):
    """Never has anything, and remembers when it was asked."""

    outputs = ["n"]
    asked: list = []
    clock = ManualClock()

    def next_tuple(self):
        self.clock.advance(0.05)
        self.asked.append((self.component_name, self.clock.now))


def test_spouts_without_offsets_share_the_time():
    Waiting.asked.clear()
    clock = Waiting.clock = ManualClock()
    local = LocalRun(compile_plan(type("Made", (Topology,), {"one": Waiting.spec(), "two": Waiting.spec()})), clock)
    follow(local, clock, end=1.9, once=False, beat=lambda: None)
    assert local.micro_batches == 2
    last = {spout: max(at for name, at in Waiting.asked if name == spout) for spout in ("one", "two")}
    assert last["one"] < last["two"] < 2.2


def test_ranges_grow_while_they_are_quickly_done():
    clock = ManualClock(now=1000.0)
    local = rate(clock, 1000)
    clock.advance(15)
    follow(local, clock, end=float("inf"), once=True, beat=lambda: None)
    assert len(local.rows["rate", "default"]) == 15_001
    assert local.micro_batches == 7  # of 128, 256, ..., 4096, and 6873 offsets


# --- as a process -----------------------------------------------------------------------------------------------------


def start(folder, *arguments, **how):
    command = [sys.executable, "-m", "pystorm_source", "run", f"{folder}:{arguments[0]}", *arguments[1:]]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, **how)


def test_ctrl_c_ends_cleanly_with_the_final_picture(folder, tmp_path):
    """A file grows; once its lines are through, the process is interrupted."""
    (tmp_path / "a.log").write_text("one two\n")
    process = start(folder, "Followed", "-o", f"path={tmp_path}/*.log", "--rows", "9", stdout=subprocess.PIPE)
    # Without a terminal a line of progress comes every two seconds.
    line = process.stdout.readline()
    assert "words 1 (" in line and "; 2 rows out of words.default, backlog 0 offsets; " in line
    with (tmp_path / "a.log").open("a") as file:
        file.write("three\n")
    line = process.stdout.readline()
    assert "words 2 (" in line
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (130, "")
    assert out[out.index("Followed, ") :].endswith(
        "words.default:\n  ('one',)\n  ('two',)\n  ('three',)\n"
        "\nended: by Ctrl-C; 3 rows out of words.default, backlog 0 offsets\n"
    )


@pytest.mark.parametrize(
    ("topology", "status"),
    [
        ("Slow", r"stalled by 'words': a call takes 5\d ms, [\d,]+ tuples are in its queue; \d+ rows out"),
        ("Hanging", r"stalled by 'words': process\(\) has not returned for \d s; 0 rows out .*backlog 1 offset;"),
        ("Unasked", r"stalled by 'lines': snapshot\(\), on the driver, has not returned for \d s; .*backlog 0 offsets"),
    ],
)
def test_a_line_names_who_stalls_the_run_and_ctrl_c_ends_it(folder, topology, status):
    process = start(folder, topology, stdout=subprocess.PIPE)
    for line in process.stdout:
        if re.search(status, line):
            break
    else:
        pytest.fail(f"never said: {process.stderr.read()}")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (130, "")
    assert out.splitlines()[-1].startswith("ended: by Ctrl-C; ")


def test_a_terminal_shows_a_live_table(folder):
    """On a terminal the table is drawn while the topology runs, and once more when it has ended."""
    ours, theirs = pty.openpty()
    process = start(
        folder, "Plain", "--for", "3s", stdout=theirs, env={**os.environ, "TERM": "xterm", "COLUMNS": "140"}
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            shown += os.read(ours, 65536)
        except OSError:  # what a terminal whose other end is closed gives on Linux
            break
    os.close(ours)
    assert process.wait(timeout=30) == 0
    text = shown.decode()
    assert text.count("queue high mark") > 4
    assert "reading" in text
    assert "ended: the time of --for is over; " in text
    executed = [int(n.replace(",", "")) for n in re.findall(r"words {2,}│[^\d]+[\d,]+[^\d]+([\d,]+)", text)]
    assert len(set(executed)) > 3 and executed == sorted(executed)
