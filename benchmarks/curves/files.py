"""How long a look takes that finds 10 new files among known ones: in folders, and in an object store's listing."""

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.curves.curve import Cost, Costs, Curve
from benchmarks.rungs.objects import listed
from pystorm_source.spouts import FilesSpout, ObjectsSpout
from pystorm_source.testing.driven import Driven

NEW, LOOKS = 10, 5
OBJECT_LOOKS = 15
"""Until the sweeps of a million known names, each of which looks at a part of them, are over."""
OBJECT_BYTES = 1000
"""Of an object, as the server lists it."""
FIELDS = ["id long"]
IN_FOLDER = 1000
"""Files in each folder."""


def look_at_folders(known: int) -> Costs:
    """Looks of a FilesSpout; all files have one line and are read."""
    with tempfile.TemporaryDirectory() as folder:
        _write(folder, 0, known)
        driven = Driven(FilesSpout.spec(path=folder, config={"files.recursive": True}))
        offsets, state = _after(driven.driver, {}, {})
        cpu = []
        for number in range(LOOKS):
            _write(folder, known + number * NEW, NEW)
            began = time.process_time()
            before = len(offsets)
            offsets, state = _after(driven.driver, offsets, state)
            cpu.append(time.process_time() - began)
            if len(offsets) != before + NEW:
                raise RuntimeError(f"{len(offsets) - before} new files were found instead of {NEW}")
        return {"cpu": statistics.median(cpu)}


def _write(folder: str, first: int, count: int) -> None:
    for number in range(first, first + count):
        below = Path(folder, f"{number // IN_FOLDER:04d}")
        below.mkdir(exist_ok=True)
        (below / f"{number:09d}.log").write_text(f"line {number}\n")


def _after(driver: Any, offsets: dict[str, int], state: Any) -> tuple[dict[str, int], Any]:
    found = driver.snapshot(offsets, state)
    return {name: end for name, (_, end) in found.heads.items()}, found.state


def look_at_objects(known: int) -> Costs:
    """Looks of an ObjectsSpout, once its first sweeps through the known names are over."""
    with tempfile.TemporaryDirectory() as folder, listed(known) as (url, add):
        options = {
            "journal.path": folder,
            "objects.config.endpoint": url,
            "objects.config.region": "us-east-1",
            "objects.config.skip_signature": "true",
            "objects.client.allow_http": "true",
        }
        driven = Driven(ObjectsSpout.spec(path="s3://lake/in", format="parquet", fields=FIELDS, config=options))
        offsets, state = _after(driven.driver, {}, {})
        cpu = []
        for _ in range(OBJECT_LOOKS):
            add(NEW)
            before = sum(offsets.values())
            began = time.process_time()
            offsets, state = _after(driven.driver, offsets, state)
            cpu.append(time.process_time() - began)
            if sum(offsets.values()) - before != NEW * OBJECT_BYTES:
                raise RuntimeError("not all new objects were found")
        return {"cpu": statistics.median(cpu[-LOOKS:])}


CURVES = (
    Curve(
        "files",
        "files known to a FilesSpout; 10 are new",
        (10, 100, 1_000, 10_000, 100_000, 1_000_000),
        (10, 200),
        {"cpu": Cost("s of a look", grows=True)},
        look_at_folders,
        1,
    ),
    Curve(
        "objects",
        "objects known to an ObjectsSpout; 10 are new",
        (10, 1_000, 10_000, 100_000, 1_000_000),
        (10, 1_000),
        {"cpu": Cost("s of a look")},
        look_at_objects,
        1,
    ),
)
