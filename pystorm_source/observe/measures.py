"""The counters and gauges of all runs, from the records that a listener gives."""

import threading
from typing import NamedTuple

from pystorm_source.observe.run_measures import RunMeasures, Sample
from pystorm_source.records.record import PystormProgress


class Common(NamedTuple):
    """Values of the common labels. ``use``: the name that an operator is counted under; for a second source of the same
    topology, its ``topology.run``."""

    query: str
    run: str
    topology: str
    use: str = ""


Samples = dict[str, list[Sample]]
"""Name of a metric → its samples."""


class Measures:
    """Spark's thread adds records, a server's threads read samples. At most ``runs`` runs are kept."""

    def __init__(self, runs: int):
        self._most = runs
        self._lock = threading.Lock()
        self._runs: dict[Common, RunMeasures] = {}
        self._samples: dict[Common, Samples] = {}  # made with each record, not by each of the readers
        self._firsts: dict[Common, str] = {}
        """The ``topology.run`` of the first source of a topology in a run."""

    def update(self, record: PystormProgress) -> None:
        """Adds a record."""
        with self._lock:
            key = self._key(record)
            run = self._runs.pop(key, None) or RunMeasures()
            run.update(record)
            self._runs[key] = run  # the last one, hence the last to be forgotten
            self._samples[key] = run.samples()
            self._forget()

    def end(self, run_id: str) -> None:
        """A run of a query has ended: its gauges are dropped."""
        with self._lock:
            for key, run in self._runs.items():
                if key.run == run_id:
                    run.ended = True
                    self._samples[key] = run.samples()

    def samples(self) -> dict[Common, Samples]:
        """The samples of each run."""
        with self._lock:
            return dict(self._samples)

    def _key(self, record: PystormProgress) -> Common:
        topology = record.topology
        query, name = record.name or record.query_id, topology.name if topology is not None else ""
        run = record.run_id or (topology.run if topology is not None else "")
        if not name:
            known = [key for key in self._runs if (key.query, key.run) == (query, run)]
            return known[0] if len(known) == 1 else Common(query, run, "")
        # The first records of a source may have no topology yet, because no task has reported.
        if record.door != "source":
            return Common(query, run, name, record.use)
        key, source = Common(query, run, name), topology.run if topology is not None else ""
        if self._firsts.setdefault(key, source) != source:
            return Common(query, run, name, source)
        if first := self._runs.pop(Common(query, run, ""), None):
            self._runs.setdefault(key, first)
            self._samples.pop(Common(query, run, ""))
        return key

    def _forget(self) -> None:
        while len(self._runs) > self._most:
            ended = (key for key, run in self._runs.items() if run.ended)
            oldest = next(ended, next(iter(self._runs)))
            del self._runs[oldest], self._samples[oldest]
            self._firsts.pop(oldest, None)
