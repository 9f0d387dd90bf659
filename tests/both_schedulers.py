"""Runs the tests of a room under both schedulers: its conftest.py imports what is here.

Where a topology says nothing of ``topology.scheduler``, the fixture does. A test that speaks of one thread's order of
turns (a seed, a clock that the component itself moves) is marked ``inline``, one that speaks of threads ``threads``.
"""

import weakref
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from cython_core.schedulers.schedulers import ThreadsScheduler
from pystorm_source.options import EngineOptions
from pystorm_source.plan import plan
from pystorm_source.worker import worker

SCHEDULERS = ("inline", "threads")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One scheduler for tests that are marked so and those that leave it to Spark, else each of them."""
    if any("scheduler" in mark.args[0] for mark in metafunc.definition.iter_markers("parametrize")):
        return  # the test says itself which
    marks = {mark.name for mark in metafunc.definition.iter_markers()}
    named = [name for name in SCHEDULERS if name in marks] or (["inline"] if "spark" in marks else SCHEDULERS)
    metafunc.parametrize("scheduler", named, indirect=True)


@pytest.fixture(autouse=True)
def scheduler(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The scheduler of this test, if its topology names none; threads that the test has left end with it."""
    chosen: str = request.param
    parse = plan.parse
    started: list[weakref.ref[ThreadsScheduler]] = []

    def scheduler_kept(*given: Any, **named: Any) -> ThreadsScheduler:
        made = ThreadsScheduler(*given, **named)
        started.append(weakref.ref(made))
        return made

    def parse_with_default(table: type[Any], given: dict[str, Any]) -> Any:
        parsed = parse(table, given)
        if table is EngineOptions and "topology.scheduler" not in given:
            return msgspec.structs.replace(parsed, scheduler=chosen)
        return parsed

    monkeypatch.setattr(plan, "parse", parse_with_default)
    monkeypatch.setattr(worker, "ThreadsScheduler", scheduler_kept)
    yield chosen
    for each in started:
        if (left := each()) is not None:
            left.stop()
