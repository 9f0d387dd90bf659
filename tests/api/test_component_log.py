"""Where components log to: loggers, files of tasks, standard error."""

import gc
import logging
import os

import pytest

from pystorm_source import Bolt, StormHandler
from pystorm_source.api.component_log import LogStream
from pystorm_source.errors import OptionError


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
