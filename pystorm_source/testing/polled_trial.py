"""A spout without offsets on trial: a CursorSpout or a QueueSpout."""

import copy
from collections.abc import Mapping
from typing import Any

from pystorm_source.api import ComponentSpec, Topology
from pystorm_source.clock import Clock
from pystorm_source.errors import TupleFailed
from pystorm_source.testing.law import Law, TimeLimit, cause_of, check_pickles, raised
from pystorm_source.testing.result import Result
from pystorm_source.testing.run import run_watched
from pystorm_source.testing.spout_trial import driven_by
from pystorm_source.testing.trial import Trial


class PolledTrial(Trial):
    """``config``: as of a query; ``most_rows``: that are read, of each partition; ``limit``: of the whole trial."""

    def __init__(
        self, spec: ComponentSpec, config: Mapping[str, Any] | None, clock: Clock, most_rows: int, limit: TimeLimit
    ):
        super().__init__(driven_by(spec, config, clock))
        self.most_rows = most_rows
        self._spec, self._config, self._limit = spec, config, limit

    def task(self) -> Any:
        """A new instance, as a task has it."""
        return self.driven.instance("task")

    def run(self, cls: type | None = None) -> Result:
        """Reads all there is, as a query does, with this class if it is given. Raises ContractBroken if a row does not
        fit."""
        spec = copy.copy(self._spec)
        spec.component_cls = cls or spec.component_cls
        topology = type("Verified", (Topology,), {"spout_": spec})
        try:
            return run_watched(topology, self._config, timeout=self._limit.left())
        except TupleFailed as error:
            self.refuse("", "no exception", raised(cause_of(error)), error)


def _check_pickles(trial: PolledTrial) -> None:
    check_pickles(trial.driven.cls, PICKLES.remedy)


PICKLES = Law(
    "the class pickles",
    "Open connections, files and locks in initialize(), not in the class, its module or the constructor",
    _check_pickles,
)
ROWS_FIT = (
    "rows fit the declared outputs",
    "Return rows as sequences of the values of `outputs`, or as mappings of fields to values of the declared types",
)
