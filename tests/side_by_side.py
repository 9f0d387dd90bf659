"""How tests run in several processes, and what ``make test`` leaves to ``.ci/run``; conftest.py imports it.

Processes are pytest-xdist's. ``make test`` says ``-n 4``, two more than the smallest machine has cores: tests
mostly wait, for Spark, a broker, a time-out. One process takes a file of tests as a whole, with the exceptions
below. ``--dist loadgroup`` would form the same groups, but it adds their names to those of the tests: pytest could not
find a failed test by its name to run it again.

- The tests that need the Spark session are two groups, and those that need a broker alone are one: a process takes a
  group as a whole, thus a run starts two sessions. In one they would last longer than all other tests together in two
  processes, for most of a query's time is spent waiting.
- No other test runs while a test marked ``quiet`` does.
"""

import fcntl
import gc
import json
import os
import re
import shutil
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.missing import to_install
from tests.stuck import watch

GROUPS = ("spark", "queries", "kafka")
"""The groups in the order in which they start. ``spark`` and ``kafka`` are fixtures of the session that cost much to
start: the first one that a test uses names its group, but for the tests of Spark in QUERIES."""
QUERIES = (
    "tests/docs/",
    "tests/examples/",
    "tests/source/",
    "tests/sink/",
    "tests/channel/leases/",
    "tests/spark/",
    "tests/stages/",
)
"""The folders whose tests of Spark are the group ``queries``, which lasts about as long as ``spark``."""

TURN, RUNNING = 0, 1
"""The bytes of the file that are locked: to be the next one to start, and to run."""


def name_of(value: object) -> str:
    """A value in the name of a test: the same in every process, thus without addresses."""
    return re.sub(r" at 0x[0-9a-f]+", "", ascii(value))[:40]


SHARED = pytest.StashKey[Path]()
"""The folder of a run that its processes share."""


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Names the shared folder to a process that is about to start."""
    if SHARED not in node.config.stash:
        folder = tempfile.mkdtemp(prefix="pystorm-tests-")
        node.config.add_cleanup(lambda: shutil.rmtree(folder))
        node.config.stash[SHARED] = Path(folder)
    node.workerinput["shared"] = str(node.config.stash[SHARED])


def shared_folder(config: pytest.Config) -> Path | None:
    """The shared folder; None if this is the only process."""
    named = getattr(config, "workerinput", {}).get("shared")
    return Path(named) if named else None


# --- which process runs what -----------------------------------------------------------------------------------------


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The groups come first: they last longest, and the files fill what is left beside them."""
    groups = {item.nodeid: group for item in items if (group := group_of(item))}
    items.sort(key=lambda item: GROUPS.index(groups[item.nodeid]) if item.nodeid in groups else len(GROUPS))
    if folder := shared_folder(config):
        # The process that distributes the tests has collected none. All others write the same.
        written = folder / f"groups-{os.getpid()}"
        written.write_text(json.dumps(groups))
        written.rename(folder / "groups")


def group_of(item: pytest.Item) -> str | None:
    """The group of a test; None if it is of no group."""
    used = next((name for name in ("spark", "kafka") if name in getattr(item, "fixturenames", ())), None)
    return "queries" if used == "spark" and item.nodeid.startswith(QUERIES) else used


def pytest_collection_finish() -> None:
    """The collector passes over ten thousand tests and all modules from here on: else a test that collects by itself
    takes a third of a second each time."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """A group is one piece of work, and so is each file."""
    from xdist.scheduler import LoadScopeScheduling

    class GroupsAndFiles(LoadScopeScheduling):
        def schedule(self) -> None:
            self.groups = json.loads((config.stash[SHARED] / "groups").read_text())
            super().schedule()

        def _split_scope(self, nodeid: str) -> str:
            return self.groups.get(str(nodeid)) or str(nodeid).partition("::")[0]

        def remove_node(self, node: Any) -> str | None:
            """A process has died: the test that it ran has failed, and another process gets what was left to it.

            Workaround (pytest-xdist 3.8): it has the test run again, which kills the next process, too; and a process
            that gets the last piece of work waits for more before it runs the last test, for ever.
            """
            left = [unit for unit in self.assigned_work.pop(node).items() if not all(unit[1].values())]
            if not left:
                return None
            _, unit = left[0]
            died: str = next(name for name, is_done in unit.items() if not is_done)
            unit[died] = True
            self.workqueue.update({scope: unit for scope, unit in left if not all(unit.values())})
            for other in self.nodes:
                self._reschedule(other)
            return died

        def _assign_work_unit(self, node: Any) -> None:
            super()._assign_work_unit(node)
            if self.collection is not None and not self.workqueue:
                node.shutdown()  # once it has done its work

    return GroupsAndFiles(config, log)


# --- quiet -----------------------------------------------------------------------------------------------------------


@pytest.hookimpl(wrapper=True, tryfirst=True)  # waiting is no part of a test's time
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Runs a test, or a quiet one alone."""
    watch(item.config)
    folder = shared_folder(item.config)
    if folder is None:
        return (yield)
    with running(folder / "lock", alone=item.get_closest_marker("quiet") is not None):
        return (yield)


@contextmanager
def running(lock: Path, alone: bool) -> Iterator[None]:
    """Shares the right to run, or has it alone.

    Record locks are those of a process: a child that a test leaves behind holds none. A process that waits to be alone
    keeps the turn meanwhile; else the others would start test after test, and it would wait until their end.
    """
    with lock.open("ab+") as file:
        fcntl.lockf(file, fcntl.LOCK_EX, 1, TURN)
        fcntl.lockf(file, fcntl.LOCK_EX if alone else fcntl.LOCK_SH, 1, RUNNING)
        fcntl.lockf(file, fcntl.LOCK_UN, 1, TURN)
        yield


# --- what is left out ------------------------------------------------------------------------------------------------

CAMPAIGNS = pytest.StashKey[set[str]]()


def pytest_deselected(items: list[pytest.Item]) -> None:
    """Keeps the names of campaigns that do not run."""
    for item in items:
        if item.get_closest_marker("campaign"):
            item.config.stash.setdefault(CAMPAIGNS, set()).add(item.nodeid.partition("[")[0])


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A process of several tells the one that prints."""
    with suppress(AttributeError):  # it is the only one
        session.config.workeroutput["campaigns"] = sorted(session.config.stash.get(CAMPAIGNS, set()))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """What a process has left out; how it has died, if it has, which pytest-xdist does not tell."""
    if error:
        status = node.gateway._io.popen.wait(20)
        node.config.get_terminal_writer().line(f"[{node.gateway.id}] exit status {status}")
    told = getattr(node, "workeroutput", {}).get("campaigns", [])
    node.config.stash.setdefault(CAMPAIGNS, set()).update(told)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """One line for what ``make test`` leaves to ``.ci/run``, one for programs that tests were skipped for want of."""
    if line := to_install(str(report.longrepr) for report in terminalreporter.stats.get("skipped", [])):
        terminalreporter.write_line(line)
    left_out = config.stash.get(CAMPAIGNS, set())
    if left_out and "not campaign" in config.option.markexpr and not config.option.keyword:
        terminalreporter.write_line(
            f"Left out: {len(left_out)} long campaigns, which .ci/run runs. "
            "To run them: make test ARGS='-m campaign'; to run everything: make test ARGS='-m \"not gate\"'."
        )
