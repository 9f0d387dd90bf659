"""The table of ``pystorm-source run`` at several widths."""

import io

import pytest
from rich.console import Console

from pystorm_source import Bolt, Topology
from pystorm_source.cli.displays.run_table import Row, rows_of, table_of
from pystorm_source.plan import compile_plan
from pystorm_source.spouts import MemorySpout

LONG = "a_component_with_quite_a_long_name"


class Bolts(Bolt):
    def process(self, tup):
        pass


def planned(**spec):
    class Planned(Topology):
        s = MemorySpout.spec(fields=["n long"], rows=[])
        b = Bolts.spec(inputs=[s], **spec)

    return compile_plan(Planned).components


def row(name, n):
    return Row(name, n, n, n, 0, float(n), 1024, 0, 0.5, {"p99": 0.001})


def drawn(rows, width):
    out = io.StringIO()
    Console(file=out, width=width).print(table_of(rows, "Words [1/2]", width))
    return out.getvalue().splitlines()


@pytest.mark.parametrize("n", [7, 123_456_789_012])
@pytest.mark.parametrize("width", [60, 80, 100, 120, 200])
def test_names_and_numbers_are_whole_at_every_width(width, n):
    lines = drawn([row("lines", n), row(LONG, n)], width)
    assert max(map(len, lines)) <= width
    (named,) = [line for line in lines if LONG in line]
    assert f"{n:,}" in named and not any("…" in line for line in lines)
    assert lines[0].rstrip() == "Words [1/2]"


def test_columns_go_in_the_order_of_their_use():
    def titles(width):
        heads = " ".join(line for line in drawn([row("lines", 7)], width) if line.startswith("┃"))
        return {word for word in ("executed", "emitted", "second", "errors", "failed", "queue", "p99") if word in heads}

    assert titles(30) == {"executed"}
    assert titles(60) == {"executed", "emitted", "second", "errors"}
    assert titles(80) >= {"executed", "emitted", "second", "errors", "failed", "queue"}
    assert titles(120) == {"executed", "emitted", "second", "errors", "failed", "queue", "p99"}


def test_a_narrow_terminal_cuts_a_long_name_and_keeps_a_number():
    lines = drawn([row(LONG, 7)], 40)
    assert max(map(len, lines)) <= 40
    assert any("a_component_with_quite_a…" in line and line.rstrip("│ ").endswith("7") for line in lines)


@pytest.mark.parametrize(("scheduler", "capacity"), [("inline", 0.95), ("threads", 0.5)])
def test_capacity_is_that_of_progress(scheduler, capacity):
    """Tasks under ``inline`` share one thread: their times add up, and are not halved by their number."""
    tasks = {"2": {"busy_seconds": 4.5}, "3": {"busy_seconds": 5.0}}
    _, row = rows_of({"components": {"b": {"executed": 10, "tasks": tasks}}}, planned(par=2), 10.0, scheduler)
    assert row.capacity == capacity
    assert row.rate == 1.0


@pytest.mark.parametrize("scheduler", ["inline", "threads"])
def test_the_capacity_of_a_bolt_with_processes_is_that_of_the_busiest_one(scheduler):
    """Processes are busy side by side; the tasks of one take turns."""
    tasks = {str(task): {"busy_seconds": 5.0, "process_seconds": task - 1.0} for task in (2, 3, 4, 5)}
    _, row = rows_of({"components": {"b": {"tasks": tasks}}}, planned(par=4, processes=2), 10.0, scheduler)
    assert row.capacity == 0.6
