"""Inside ``source/``: what Spark keeps lies at the bottom, what runs on the driver on top; nothing imports upwards."""

import pytest

from tests.house import rooms

SOURCE = rooms.ROOT / "pystorm_source" / "source"
# ``request``: files of ``source/`` itself that a ``.load()`` makes and a task gets; ``entry``: where Spark comes in.
ENTRY = {"__init__.py", "data_source.py", "register.py"}
MAY_IMPORT = {
    "offsets": set(),
    "admission": {"offsets"},
    "request": {"offsets", "admission"},
    "task": {"request", "offsets"},
    "driver": {"task", "request", "admission", "offsets"},
    "entry": {"driver", "task", "request", "admission", "offsets"},
}


def room_of(parts):
    """The room of a file or module below ``source/``, given by its parts."""
    if len(parts) > 1 or (SOURCE / parts[0]).is_dir():
        return parts[0]
    return "entry" if f"{parts[0].removesuffix('.py')}.py" in ENTRY else "request"


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_directions(path):
    room = room_of(path.relative_to(SOURCE).parts)
    for found in rooms.imports(path):
        head, _, below = found.module.partition("pystorm_source.source.")
        if below and not head:
            target = room_of(below.split("."))
            assert target in MAY_IMPORT[room] | {room}, f"{found.path}:{found.line}: {room} imports {found.module}"


def test_every_folder_is_a_room():
    assert {path.name for path in SOURCE.iterdir() if path.is_dir() and path.name != "__pycache__"} < set(MAY_IMPORT)
