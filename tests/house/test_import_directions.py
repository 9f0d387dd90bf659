"""Rooms import in one direction only, and Spark is known to three of them."""

from tests.house import rooms
from tests.of_all import of_all

HALL = rooms.ROOT / "pystorm_source/spouts"


@of_all(rooms.sources())
def test_directions(path):
    room = rooms.room_of_path(path.relative_to(rooms.ROOT).as_posix())
    assert room in rooms.MAY_IMPORT, f"{room}: a room without a line in tests/house/rooms.py"
    allowed = rooms.MAY_IMPORT[room] | {room}
    for found in rooms.imports(path):
        target = rooms.room_of_module(found.module)
        where = f"{found.path}:{found.line} imports {found.module}"
        if target is not None:
            assert target in allowed, f"{where}: {room} may import {sorted(allowed)} only"
        if found.module.split(".")[0] in {"pyspark", "py4j"}:
            assert room in rooms.MAY_IMPORT_PYSPARK, f"{where}: only {sorted(rooms.MAY_IMPORT_PYSPARK)} know Spark"
        if room == "shim":
            assert not (found.at_top and (target or found.module.startswith("pyspark"))), f"{where} when it is imported"


@of_all(sorted(HALL.rglob("*.py")))
def test_no_ready_made_spout_imports_another_one(path):
    prefix = "pystorm_source.spouts."
    own = path.relative_to(HALL).with_suffix("").parts[0]
    imported = {each.module.removeprefix(prefix).split(".")[0] for each in rooms.imports(path)}
    others = imported & rooms.SPOUTS - {own}
    assert own == "__init__" or not others, f"{path.name} of {own} imports {sorted(others)}"


def test_tests_and_benchmarks_meet_in_the_testbed():
    """Only tests of the benchmarks import these. What both need lies in ``testbed``, which imports neither."""
    for folder, refused in {
        "tests": {"benchmarks"},
        "benchmarks": {"tests"},
        "testbed": {"tests", "benchmarks"},
    }.items():
        for path in sorted((rooms.ROOT / folder).rglob("*.py")):
            if (rooms.ROOT / "tests/benchmarks") not in path.parents:
                tops = {found.module.split(".")[0] for found in rooms.imports(path)}
                assert not tops & refused, f"{path.relative_to(rooms.ROOT)} imports {sorted(tops & refused)}"


def test_the_reader_of_imports_reads_all_kinds(tmp_path, monkeypatch):
    monkeypatch.setattr(rooms, "ROOT", tmp_path)
    (tmp_path / "pystorm_source" / "api").mkdir(parents=True)
    room = tmp_path / "cython_core" / "tuples"
    room.mkdir(parents=True)
    (room / "tuple.pxd").touch()
    python = tmp_path / "pystorm_source" / "api" / "bolt.py"
    python.write_text(
        "import os, pystorm_source.plan.graph as g\nfrom . import spout\nfrom ..errors import UsageError\n"
        "from pystorm_source import api\ndef f():\n    import pyspark.sql\n"
    )
    read = {(found.module, found.at_top) for found in rooms.imports(python)}
    assert read == {
        ("os", True),
        ("pystorm_source.plan.graph", True),
        ("pystorm_source.api", True),
        ("pystorm_source.errors", True),
        ("pyspark.sql", False),
    }
    cython = room / "queue.pyx"
    cython.write_text(
        '"""Example:\n    import pystorm_source.source\n"""\n'
        "from libc.stdint cimport int64_t\nfrom cython_core.tuples cimport tuple\ncimport cython, cpython.list\n"
        "cdef f():\n    from pystorm_source.errors import UsageError\nfrom .tuple cimport (Tuple,\n    TupleSource)\n"
    )
    assert [(found.module, found.line) for found in rooms.imports(cython)] == [
        ("libc.stdint", 4),
        ("cython_core.tuples.tuple", 5),
        ("cython", 6),
        ("cpython.list", 6),
        ("pystorm_source.errors", 8),
        ("cython_core.tuples.tuple", 9),
    ]
