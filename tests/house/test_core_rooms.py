"""Inside ``cython_core/``: imports, cimports and includes of C headers run one way through its rooms."""

import re
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.house import rooms

CORE = rooms.ROOT / "cython_core"
MAY_USE = {
    "primitives": set(),
    "timing": {"primitives"},
    "acking": {"timing", "primitives"},
    "tuples": {"acking", "primitives"},
    "links": {"primitives"},
    "queues": {"tuples", "primitives"},
    "arrow": {"acking"},
    "routing": {"arrow", "queues", "tuples", "acking", "primitives"},
    "compiled": {"routing", "arrow", "tuples", "acking"},
    "states": {"routing", "tuples"},
    "executors": {"compiled", "links", "routing", "arrow", "queues", "tuples", "acking", "timing", "primitives"},
    "schedulers": {"executors", "routing", "arrow", "queues", "acking", "timing", "primitives"},
}
_INCLUDE = re.compile(r'^\s*(?:#\s*include|cdef extern from)\s*"([^"]+)"', re.MULTILINE)
FILES = sorted(path for room in MAY_USE for path in (CORE / room).iterdir() if path.suffix in rooms.CORE_SUFFIXES)


def used(path: Path) -> set[str]:
    """The rooms that a file imports from, or whose headers it includes."""
    names = [Path(name).parts for name in _INCLUDE.findall(path.read_text())]
    if path.suffix != ".h":
        names += [each.module.split(".") for each in rooms.imports(path)]
    return {name[1] for name in names if name[0] == "cython_core"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(CORE).as_posix())
def test_directions(path):
    room = path.parent.name
    assert used(path) <= MAY_USE[room] | {room}


def test_there_is_no_circle():
    assert set(TopologicalSorter(MAY_USE).static_order()) == set(MAY_USE)


def test_nothing_is_allowed_that_nothing_needs():
    needed = {room: set().union(*(used(path) for path in FILES if path.parent.name == room)) for room in MAY_USE}
    assert {room: uses - needed[room] for room, uses in MAY_USE.items() if uses - needed[room]} == {}


def test_every_folder_is_a_room():
    assert {path.name for path in CORE.iterdir() if path.is_dir() and path.name != "__pycache__"} == set(MAY_USE)


def test_a_header_lies_beside_what_includes_it():
    """Every header is read, and by its path from the root: a name alone would be found in any folder."""
    named = {name for path in FILES for name in _INCLUDE.findall(path.read_text())}
    ours = {path.relative_to(rooms.ROOT).as_posix() for path in FILES if path.suffix == ".h"}
    assert ours <= named
    assert {name for name in named if not name.startswith("cython_core/")} <= {"Python.h"}
