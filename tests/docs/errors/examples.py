"""What an example of docs/ERRORS.md is: a function that raises; the page shows the first message of each code."""

from collections.abc import Callable
from typing import Any, NamedTuple

from pystorm_source.api import Bolt, Topology
from pystorm_source.errors.conditions import CONDITIONS, Code
from pystorm_source.spouts import MemorySpout


class Example(NamedTuple):
    """``run(folder)`` raises. ``event``: what has happened, if the message leaves that open."""

    code: Code
    run: Callable[..., Any]
    event: str


EXAMPLES: dict[Code, list[Example]] = {}
"""Code → an example or several, in the order of the page."""


def raises(code: Code, event: str = "") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorates an example."""
    assert code in CONDITIONS, code

    def add(run: Callable[..., Any]) -> Callable[..., Any]:
        EXAMPLES.setdefault(code, []).append(Example(code, run, event))
        return run

    return add


class NoSpark:
    """The ``spark`` of the examples: all of them are refused before Spark is asked anything."""

    _jsc = None

    def __repr__(self):
        return "<pyspark.sql.session.SparkSession object at 0x7f5c31d0>"


spark: Any = NoSpark()


class Numbers(Topology):
    numbers = MemorySpout.spec(fields=["n long"], rows=[[0], [1]])


def through(bolt: type[Bolt], **more: Any) -> type[Topology]:
    class Line(Topology):
        numbers = MemorySpout.spec(fields=["n long"], rows=[[0], [1]])
        mine = bolt.spec(inputs=[numbers], **more)

    return Line
