"""Tuples from memory, for tests and first steps."""

import math
from typing import Any, ClassVar

from pystorm_source.api.component_spec import ComponentSpec
from pystorm_source.api.partitioned_spout import PartitionedSpout
from pystorm_source.api.spec_config import spec_config
from pystorm_source.api.stream import Stream
from pystorm_source.errors import OptionError
from pystorm_source.spouts.memory_values import json_of_value, value_of


def _check_width(rows: Any, stream: Stream | None) -> None:
    if stream is None:
        return
    for row in rows:
        if isinstance(row, (list, tuple)) and len(row) != len(stream.fields):
            raise OptionError(
                f"a row of a MemorySpout has a value for each of {list(stream.fields)}. Given: {row!r}",
                code="PYSTORM_INVALID_OPTION",
            )


class MemorySpout(PartitionedSpout):
    """A fixed list of rows, dealt in turn to partitions. For tests and first steps.

    Rows given to ``spec`` hold what JSON has, and decimals, dates, times, intervals, bytes and maps with any keys. A
    subclass may set ``outputs`` and ``rows``, of any Python values.

    Partitions are called "0", "1", ...; row ``i`` is offset ``i // partitions`` of partition ``i % partitions``.

    Attributes:
        rows (list): lists or tuples with one value per field. Defaults to ().
        number_of_partitions (int): partitions. Defaults to 1.

    Raises:
        OptionError: a row that is no list or tuple, or fewer partitions than 1, when the topology is run.

    Example:
        >>> from datetime import date
        >>> from pystorm_source.spouts import MemorySpout
        >>> from pystorm_source.testing import run_topology
        >>> class Rows(Topology):
        ...     numbers = MemorySpout.spec(fields=["n long"], rows=[[1], [2], [3]], partitions=2)
        ...     days = MemorySpout.spec(fields=["day date"], rows=[[date(2024, 2, 29)]])
        >>> result = run_topology(Rows)
        >>> result.rows("numbers"), result.rows("days")
        ([(1,), (3,), (2,)], [(datetime.date(2024, 2, 29),)])
    """

    rows: ClassVar[Any] = ()
    number_of_partitions: ClassVar[int] = 1
    bounded = True
    poll_seconds = 0.0  # a list in memory costs nothing to ask

    @classmethod
    def spec(
        cls,
        name: str | None = None,
        par: int | dict[str, int] | None = None,
        config: dict[str, Any] | None = None,
        *,
        rows: Any = None,
        partitions: int | None = None,
        fields: list[str] | None = None,
    ) -> ComponentSpec:
        """This spout for a Topology. What is not given is the class's.

        Args:
            name (str): as in ``Spout.spec``.
            par (int | dict[str, int]): as in ``Spout.spec``.
            config (dict): as in ``Spout.spec``.
            rows (list): lists or tuples with one value per field. Defaults to the class's.
            partitions (int): partitions that the rows are dealt to in turn, at least 1. Defaults to the class's.
            fields (list[str]): names and types, as in ``outputs``. Defaults to the class's ``outputs``.

        Returns:
            ComponentSpec: what an attribute of the Topology is set to.

        Raises:
            OptionError: a row of another length than ``fields``.
        """
        if rows is not None:
            rows = [json_of_value(row) for row in rows]
        given = {"memory.rows": rows, "memory.partitions": partitions}
        spec = super().spec(name=name, par=par, config=spec_config(cls.config, config, given))
        if fields is not None:
            spec.streams = Stream.all_of(fields, given_by=cls.__name__)
            _check_width(rows or (), spec.stream("default"))
        return spec

    def initialize(self, conf: dict[str, Any], context: dict[str, Any]) -> None:
        """Takes the rows.

        Raises:
            OptionError: a row that is no list or tuple, or fewer partitions than 1.
        """
        given = conf.get("memory.rows")
        self._rows = self.rows if given is None else value_of(given)
        self._count = conf.get("memory.partitions", self.number_of_partitions)
        if isinstance(self._count, bool) or not isinstance(self._count, int) or self._count < 1:
            raise OptionError(
                f"`partitions` of a MemorySpout is an int of at least 1. Given: {self._count!r}",
                code="PYSTORM_INVALID_OPTION",
            )
        for row in self._rows:
            if not isinstance(row, (list, tuple)):
                raise OptionError(
                    f"a row of a MemorySpout is a list or tuple with one value per field. Given: {row!r}",
                    code="PYSTORM_INVALID_OPTION",
                )

    def partitions(self) -> list[str]:
        return [str(index) for index in range(self._count)]

    def latest(self, partition: str) -> int:
        return max(0, math.ceil((len(self._rows) - int(partition)) / self._count))

    def open(self, partition: str, start: int, end: int) -> None:
        self._pairs = zip(self._rows[int(partition) :: self._count][start:end], range(start, end), strict=False)

    def next_tuple(self) -> Any:
        for row, offset in self._pairs:
            self.emit(row, offset)
            return None
        return False
