"""Queries that write into the ``noop`` sink in turn, so that a noisy machine disturbs all alike."""

import time
from collections.abc import Callable, Mapping
from typing import Any


def rates_in_turn(rows: int, runs: int, sides: Mapping[str, Callable[[], Any]]) -> dict[str, list[float]]:
    """Side → its rows per second in each run, after one warm-up run. ``sides``: make the DataFrames, which is not
    measured."""
    seen: dict[str, list[float]] = {side: [] for side in sides}
    for number in range(1 + runs):
        for side, query in sides.items():
            frame = query()
            began = time.perf_counter()
            frame.write.format("noop").mode("overwrite").save()
            if number > 0:
                seen[side].append(rows / (time.perf_counter() - began))
    return seen
