from typing import final

from cython_core.primitives.latency_histogram import LatencyHistogram

@final
class Stopwatch:
    def stop(self) -> None: ...

@final
class TurnTimes:
    slow_nanos: int
    @property
    def latency(self) -> LatencyHistogram: ...
    @property
    def busy(self) -> int: ...
    @property
    def stalls(self) -> dict[str, int]: ...
    def share(self, stopwatch: Stopwatch) -> None: ...
