"""One measured case as one JSON line.

All of these keys, always in this order: ``bench, case, value, unit, peer, peer_version, peer_value, ratio, asked,
reached, runs, spread, cpu, python, commit``; then those that a benchmark adds.

    value, peer_value   medians over the runs, which alternate between ours and the peer
    ratio               value / peer_value, or the inverse where less is better: more is always better for us
    asked, reached      the target that we set ourselves: for ``ratio`` if there is a peer, otherwise for ``value``
    spread              (largest - smallest) / median of our values
    unsteady            true if the spread is over MOST_SPREAD: what else the machine did was in the figures

A value that could not be measured is null, with the reason in ``note``.
"""

import functools
import os
import platform
import re
import statistics
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

KEYS = (
    "bench",
    "case",
    "value",
    "unit",
    "peer",
    "peer_version",
    "peer_value",
    "ratio",
    "asked",
    "reached",
    "runs",
    "spread",
    "cpu",
    "python",
    "commit",
)

MOST_SPREAD = 0.25
"""Smaller: a shared machine never measures. Larger: a median of such runs is off by a tenth."""

ROOT = Path(__file__).resolve().parents[2]

Record = dict[str, Any]


def record(
    bench: str,
    case: str,
    values: Sequence[float],
    unit: str,
    *,
    peer: str | None = None,
    peer_version: str | None = None,
    peer_values: Sequence[float] = (),
    asked: float | None = None,
    less_is_better: bool = False,
    **added: Any,
) -> Record:
    """Builds the record of a case measured ``len(values)`` times, in ``unit``.

    ``added``: further keys; None means "does not apply" and is left out.
    """
    value = statistics.median(values) if values else None
    peer_value = statistics.median(peer_values) if peer_values else None
    ratio = None
    if value and peer_value:
        ratio = peer_value / value if less_is_better else value / peer_value
    made = {
        "bench": bench,
        "case": case,
        "value": rounded(value),
        "unit": unit,
        "peer": peer,
        "peer_version": peer_version,
        "peer_value": rounded(peer_value),
        "ratio": rounded(ratio),
        "asked": asked,
        "reached": reached(value, ratio, asked, has_peer=peer is not None, less_is_better=less_is_better),
        "runs": len(values),
        "spread": spread(values),
        "cpu": cpu(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "commit": commit(),
    }
    if (made["spread"] or 0) > MOST_SPREAD:
        added["unsteady"] = True
    return made | {key: entry for key, entry in added.items() if entry is not None}


def reached(
    value: float | None, ratio: float | None, asked: float | None, *, has_peer: bool, less_is_better: bool
) -> bool | None:
    """Whether the target was reached; None without a target or a measurement."""
    seen = ratio if has_peer else value
    if asked is None or seen is None:
        return None
    return seen <= asked if less_is_better and not has_peer else seen >= asked


def spread(values: Sequence[float]) -> float | None:
    """Returns (largest - smallest) / median, rounded to thousandths; None for fewer than two values."""
    if len(values) < 2 or not statistics.median(values):
        return None
    return round((max(values) - min(values)) / statistics.median(values), 3)


def rounded(number: float | None, digits: int = 4) -> float | None:
    """Rounds to so many significant digits: the others are noise. Large numbers become ints."""
    if number is None or number == 0:
        return number
    short = float(f"{number:.{digits}g}")
    return int(short) if abs(short) >= 10 ** (digits - 1) else short


@functools.cache
def cpu() -> str:
    """Returns the processor's model and the number of usable cores."""
    model = platform.processor() or platform.machine()
    try:
        named = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
        model = named[1].strip() if named else model
    except OSError:
        pass
    return f"{model}, {cores()} cores"


def cores() -> int:
    """Returns the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@functools.cache
def commit() -> str | None:
    """Returns the checkout's short commit, with ``+`` if tracked files are changed; None outside of a checkout."""
    try:
        name = _git("rev-parse", "--short=12", "HEAD")
        changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".", ":(exclude)benchmarks/results")
    except (OSError, subprocess.CalledProcessError):
        return None
    return name + ("+" if changed else "")


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def table(records: Iterable[Record]) -> str:
    """Formats the records for people, a line each."""
    head = ("case", "value", "unit", "peer", "peer value", "ratio", "asked", "reached", "spread")
    rows: list[tuple[str, ...]] = [head]
    for entry in records:
        peer = f"{entry['peer']} {entry['peer_version'] or ''}".strip() if entry["peer"] else ""
        shown = [
            entry["case"],
            entry["value"],
            entry["unit"],
            peer,
            entry["peer_value"],
            entry["ratio"],
            entry["asked"],
        ]
        shown += [{True: "yes", False: "no", None: ""}[entry["reached"]], entry["spread"]]
        rows.append(tuple(_shown(cell) for cell in shown))
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def _shown(cell: Any) -> str:
    if cell is None:
        return ""
    if isinstance(cell, (int, float)) and not isinstance(cell, bool):
        return f"{cell:,.0f}" if abs(cell) >= 1000 else f"{cell:g}"
    return str(cell)
