"""Where components log to: loggers, files of tasks, standard error."""

import gc
import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cython_core.executors.executor import Reported
from pystorm_source import Bolt, StormHandler
from pystorm_source.api.component_log import FIRST, MOST_KINDS, ErrorLog, LogStream
from pystorm_source.clock import ManualClock
from pystorm_source.errors import LONGEST_TRACEBACK, OptionError

ROOT = Path(__file__).resolve().parents[2]


class Words(Bolt):
    outputs = ["word string"]


def started(conf, task=7, bolt=None):
    bolt = bolt or Words()
    bolt._start({"topology.name": "T", **conf}, {"componentid": "logged", "taskid": task})
    return bolt


def lines(path):
    return path.read_text().splitlines()


@pytest.mark.parametrize(
    ("conf", "level"),
    [
        ({}, "INFO"),
        ({"pystorm.log.level": "warn"}, "WARNING"),
        ({"pystorm.log.level": "trace"}, "DEBUG"),
        ({"pystorm.log.level": "critical"}, "CRITICAL"),
        ({"pystorm.log.level": "error", "topology.debug": True}, "DEBUG"),
        ({"pystorm.log.level": "Error"}, "ERROR"),
        ({"topology.debug": "false"}, "INFO"),
    ],
)
def test_levels(conf, level):
    logger = started(conf).logger
    assert (logger.name, logging.getLevelName(logger.getEffectiveLevel())) == ("pystorm.component.logged", level)


def test_a_file_per_task(tmp_path):
    folder = tmp_path / "made" / "here"
    tasks = [started({"pystorm.log.path": str(folder)}, task) for task in (1, 2)]
    for bolt in tasks:
        bolt.logger.info("from %d", bolt.task_id)
        bolt.logger.debug("too low")
    for task in (1, 2):
        (line,) = lines(folder / f"pystorm_T_logged_{task}_{os.getpid()}.log")
        assert line.endswith(f" - pystorm.component.logged - INFO - from {task}")


def test_what_a_file_gets_goes_on_to_the_loggers_above(tmp_path, caplog):
    bolt = started({"pystorm.log.path": str(tmp_path)})
    bolt.logger.info("heard")
    logging.getLogger("pystorm.component.logged").setLevel(logging.ERROR)
    bolt.logger.info("not heard")
    assert caplog.messages == ["heard"]
    assert bolt.logger.name == "pystorm.component.logged"


def test_the_form_of_a_file(tmp_path):
    conf = {
        "pystorm.log.path": str(tmp_path),
        "pystorm.log.file": "{component_name}.txt",
        "pystorm.log.format": "%(message)s",
        "pystorm.log.max_bytes": 20,
        "pystorm.log.backup_count": 1,
    }
    bolt = started(conf)
    for word in ("first", "second", "third", "fourth", "fifth"):
        bolt.log(word)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["logged.txt", "logged.txt.1"]
    assert lines(tmp_path / "logged.txt.1") == ["first", "second", "third"]
    assert lines(tmp_path / "logged.txt") == ["fourth", "fifth"]


def open_files(folder):
    links = (os.path.join("/proc/self/fd", fd) for fd in os.listdir("/proc/self/fd"))
    return [target for target in (os.readlink(link) for link in links if os.path.exists(link)) if str(folder) in target]


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts open files, which only Linux lists")
def test_files_are_closed_with_their_component(tmp_path):
    """A Spark Python worker serves for days: neither files nor handlers may pile up with restarts."""
    root = len(logging.getLogger().handlers), len(logging.getLogger("pystorm").handlers)
    bolt = Words()
    for _ in range(5):
        started({"pystorm.log.path": str(tmp_path)}, bolt=bolt)
    assert len(open_files(tmp_path)) == 1
    for task in range(5):
        bolt = started({"pystorm.log.path": str(tmp_path)}, task)
    bolt = None
    gc.collect()
    assert open_files(tmp_path) == []
    assert logging.getLogger("pystorm.component.logged").handlers == []
    assert root[0] == len(logging.getLogger().handlers)
    assert len(logging.getLogger("pystorm").handlers) <= max(1, root[1])


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("pystorm.log.level", "loud"),
        ("pystorm.log.max_bytes", -1),
        ("pystorm.log.backup_count", "many"),
        ("pystorm.log.file", "{host}.log"),
        ("pystorm.log.file", "{}.log"),
    ],
)
def test_wrong_keys_are_named(tmp_path, key, value):
    with pytest.raises(OptionError, match=f"{key}.*Given: "):
        started({"pystorm.log.path": str(tmp_path), key: value})


def test_a_directory_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OptionError, match=r"pystorm.log.path.*every Spark worker may write.*Given: "):
        started({"pystorm.log.path": str(tmp_path / "file" / "below")})


def test_where_nobody_listens_standard_error_does(monkeypatch, capsys):
    for _ in range(3):
        bolt = started({})
    with monkeypatch.context() as patch:
        patch.setattr(logging.getLogger(), "handlers", [])
        bolt.logger.info("once")
    logged = capsys.readouterr().err
    assert logged.count("once") == 1
    assert logged.endswith(" - pystorm.component.logged - INFO - once\n")


def test_where_the_root_logger_is_heard_standard_error_is_not(capsys):
    seen = logging.StreamHandler()
    logging.getLogger().addHandler(seen)
    try:
        started({}).logger.info("through the root")
    finally:
        logging.getLogger().removeHandler(seen)
    assert capsys.readouterr().err == "through the root\n"


def test_a_storm_handler_of_the_users_own(capsys):
    logger = logging.Logger("mine")
    handler = StormHandler("json")
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    logger.addHandler(handler)
    logger.warning("wet %s", "paint")
    assert capsys.readouterr().err == "WARNING wet paint\n"
    assert isinstance(handler, logging.Handler)


def test_a_stream_of_log_lines(caplog):
    stream = LogStream(logging.getLogger("pystorm.stdout"))
    with caplog.at_level(logging.INFO, logger="pystorm.stdout"):
        print("hello", file=stream)
    stream.flush()
    assert caplog.messages == ["hello"]


# --- exceptions that repeat ---


class Failing(Bolt):
    def fails(self, text="broken"):
        try:
            raise ValueError(text)
        except ValueError as error:
            self.raise_exception(error, self)

    def fails_elsewhere(self):
        try:
            raise ValueError("elsewhere")
        except ValueError as error:
            self.raise_exception(error)


@pytest.fixture
def failing(caplog):
    """A bolt, its clock, and what it has logged: the first line of each record."""
    clock = ManualClock()
    bolt = started({}, bolt=Failing())
    bolt._pystorm_errors = ErrorLog(clock)
    return bolt, clock, lambda: [message.split("\n")[0] for message in caplog.messages]


FIRST_LINE = "Python ValueError raised"


def test_of_a_thousand_exceptions_of_one_kind_three_are_logged_whole(failing, caplog):
    bolt, _, logged = failing
    for _ in range(1000):
        bolt.fails()
    assert len(logged()) == 3 and all(line.startswith(FIRST_LINE) for line in logged())
    assert all("in fails" in message and "ValueError: broken" in message for message in caplog.messages)
    assert sum(message.count("\n") for message in caplog.messages) < 30
    bolt._pystorm_errors.log_counts(everything=True)
    assert re.fullmatch(
        r"component 'logged': ValueError at .*test_component_log.py:\d+: 997 more in 0 s, 1000 in all; the last one: "
        "ValueError: broken",
        logged()[3],
    )
    bolt._pystorm_errors.log_counts(everything=True)
    assert len(logged()) == 4


def test_of_exceptions_that_are_retried_one_is_logged_in_a_line_and_whole_at_debug(failing, caplog):
    bolt, _, _ = failing
    bolt._pystorm_reported = Reported()
    bolt._pystorm_reported.retries = True  # by the executor
    bolt.logger.setLevel("DEBUG")
    for n in range(20):
        try:
            raise ConnectionRefusedError("refused")
        except ConnectionRefusedError as error:
            bolt.raise_exception(error, [n])
    record, whole = caplog.records
    assert whole.levelname == "DEBUG" and "Traceback" in whole.getMessage()
    assert record.levelname == "WARNING"
    assert record.getMessage().startswith("topology.retry.on retries ConnectionRefusedError: refused at File ")
    assert record.getMessage().endswith(" of Tuple [0]; further ones are counted")
    assert "\n" not in record.getMessage()
    bolt._pystorm_errors.log_counts(everything=True)
    assert caplog.records[2].levelname == "WARNING"
    assert ": 19 more in 0 s, 20 in all; the last one: ConnectionRefusedError: refused" in caplog.messages[2]
    bolt._pystorm_reported.retries = False
    bolt.fails()
    assert caplog.records[3].levelname == "ERROR" and "Traceback" in caplog.messages[3]


def test_then_a_count_a_minute(failing):
    bolt, clock, logged = failing
    for second in range(300):
        clock.advance(1)
        bolt.fails(f"number {second}")
    counts = logged()[3:]
    assert [re.search(r": (\d+) more in 60 s, (\d+) in all", line).groups() for line in counts] == [
        ("60", "63"), ("60", "123"), ("60", "183"), ("60", "243"),
    ]  # fmt: skip
    assert counts[0].endswith("the last one: ValueError: number 62")


def test_another_line_another_exception_and_another_component_are_other_kinds(failing):
    bolt, _, logged = failing
    for _ in range(10):
        bolt.fails()
        bolt.fails_elsewhere()
        bolt._pystorm_errors.takes("other", bolt.logger, ValueError())
    assert len(logged()) == 6


def test_code_that_is_made_up_at_run_time_fills_no_memory(failing):
    bolt, _, logged = failing
    log = bolt._pystorm_errors
    for n in range(MOST_KINDS + 10):
        error = type(f"Error{n}", (Exception,), {})()
        assert all(log.takes("c", bolt.logger, error) for _ in range(FIRST))
        assert not log.takes("c", bolt.logger, error)
    assert len(logged()) == 10  # the counts of those that were forgotten


def test_an_exception_that_does_not_print_is_logged_and_counted(failing):
    bolt, _, logged = failing

    class Mute(Exception):
        def __str__(self):
            raise RuntimeError("will not print")

    for _ in range(5):
        bolt.raise_exception(Mute())
    bolt._pystorm_errors.log_counts(everything=True)
    assert logged()[:3] == ["Python Mute raised"] * 3
    assert logged()[3].endswith("2 more in 0 s, 5 in all; the last one: Mute, which does not print")


def test_what_is_logged_of_a_large_tuple_and_exception_is_cut(failing, caplog):
    bolt, _, _ = failing
    bolt.raise_exception(ValueError("x" * 50_000_000), ["y" * 50_000_000])
    (message,) = caplog.messages
    assert len(message) < 2 * LONGEST_TRACEBACK


def test_a_process_of_sparks_shows_why_a_query_is_throttled():
    """A line of INFO, of the engine's: Python's root logger takes warnings only."""
    program = """
import logging
from tests.api.test_component_log import started
{before}
started({{}})
logging.getLogger("pystorm.source").info("micro-batches read at most 7 offsets")
"""
    for before, shown in [("", True), ("logging.getLogger('pystorm').setLevel(logging.WARNING)", False)]:
        command = [sys.executable, "-c", program.format(before=before)]
        ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
        assert ("INFO - micro-batches read at most 7 offsets" in ended.stderr) is shown
