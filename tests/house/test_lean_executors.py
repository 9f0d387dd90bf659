"""A task's Python process loads nothing of the tools: the command line, its migration, the tuner."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ("pystorm_source.cli", "pystorm_source.tuning")
WHAT_A_TASK_LOADS = """
import importlib, pathlib, sys
import pystorm_source, pyspark_pystorm
for room in ("spark", "source/task", "sink", "worker", "stages", "operator", "spouts", "bolts", "states"):
    for path in sorted(pathlib.Path("pystorm_source", room).glob("*.py")):
        if path.stem != "__init__":
            importlib.import_module(".".join(path.with_suffix("").parts))
"""


def loaded(code: str) -> set[str]:
    """The modules of ours that a fresh interpreter has after that code."""
    code += "\nprint(*(name for name in sys.modules if name.startswith('pystorm_source')))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_a_task_loads_none_of_the_tools():
    found = loaded(WHAT_A_TASK_LOADS)
    assert {"pystorm_source.worker.worker", "pystorm_source.source.task.range_partition"} <= found
    assert not [name for name in found if name.startswith(TOOLS)]


def test_a_tool_would_be_seen():
    """The negative control."""
    assert [name for name in loaded("import sys, pystorm_source.tuning.sweep") if name.startswith(TOOLS)]
