"""The drawn house: no circle of rooms or of modules, no arrow that nothing needs, nothing loose at the top."""

import re
from collections import defaultdict
from graphlib import CycleError, TopologicalSorter

import pytest

from tests.house import rooms

TOP = {"__init__", "__main__", "clock", "version"}


def modules():
    """Module → those of ours that it imports, also inside of functions and for types alone."""
    paths = {
        path.relative_to(rooms.ROOT).with_suffix("").as_posix().replace("/", "."): path for path in rooms.sources()
    }
    names = {name.removesuffix(".__init__"): path for name, path in paths.items() if path.suffix == ".py"}
    found = defaultdict(set)
    for name, path in names.items():
        for each in rooms.imports(path):
            target = each.module
            while target and target not in names:
                target = target.rpartition(".")[0]
            found[name] |= {target} - {"", name}
    return found


def circle(graph):
    """The names of a circle, empty if there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def test_no_circle_of_modules():
    assert circle(modules()) == []


def test_no_circle_of_rooms():
    assert circle(rooms.MAY_IMPORT) == []


@pytest.mark.parametrize(
    ("graph", "length"), [({"a": {"b"}, "b": {"c"}}, 0), ({"a": {"b"}, "b": {"c"}, "c": {"a"}}, 4)]
)
def test_a_circle_would_be_found(graph, length):
    assert len(circle(graph)) == length


def test_nothing_is_allowed_that_nothing_needs():
    needed = defaultdict(set)
    for path in rooms.sources():
        room = rooms.room_of_path(path.relative_to(rooms.ROOT).as_posix())
        needed[room] |= {rooms.room_of_module(each.module) for each in rooms.imports(path)}
    assert {room: uses - needed[room] for room, uses in rooms.MAY_IMPORT.items() if uses - needed[room]} == {}


def test_the_architecture_names_every_room():
    page = (rooms.ROOT / "docs/ARCHITECTURE.md").read_text()
    assert set(re.findall(r"^\| `(\w+)`: ", page, re.MULTILINE)) == set(rooms.MAY_IMPORT)


def test_at_the_top_lie_the_package_and_what_users_import_from_there():
    assert {path.stem for path in (rooms.ROOT / "pystorm_source").glob("*.py")} == TOP | rooms.FACES
