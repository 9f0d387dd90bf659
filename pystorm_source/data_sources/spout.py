"""A Spark Python data source as a spout."""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import pyarrow as pa
from pyspark.errors import PySparkNotImplementedError
from pyspark.sql.datasource import CaseInsensitiveDict, DataSource, DataSourceStreamReader, SimpleDataSourceStreamReader
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from pystorm_source.api.cursor_spout import CursorSpout
from pystorm_source.data_sources.ranges import Ranges
from pystorm_source.errors import TopologyError, given
from pystorm_source.types.arrow import arrow_type


class DataSourceSpout(CursorSpout):
    """A streaming Python data source (SPARK-44076) that was written for Spark, read as a spout.

    Set ``source``, and ``source_options`` if it has any.

    Like every ``CursorSpout``, it needs a journal (option ``journal.path``), and gets micro-batches of a bounded size
    whatever its offsets span, ``poll_seconds``, ``RetryLater``, counts, and each row exactly once, even if the source
    would give other rows when asked again. The source's ``commit`` is called once its rows are in the journal.

    Trap: one Spark task reads all of its partitions, one after the other. ``journal.readers`` spreads the rows over
    many tasks.

    Attributes:
        source (type[DataSource]): has ``streamReader`` or ``simpleStreamReader``.
        source_options (dict[str, str]): its options. ``initialize`` may set them, for example to add a token.
        outputs (list[str]): names and types of its columns. Defaults to what its ``schema()`` returns without Spark,
            when the class is made.

    Raises:
        TopologyError: ``source`` is no data source, has no streaming reader, or has a ``schema()`` that cannot be
            asked.

    Example:
        >>> from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader
        >>> from pystorm_source.data_sources import DataSourceSpout
        >>> class Numbers(SimpleDataSourceStreamReader):
        ...     def initialOffset(self):
        ...         return {"n": 0}
        ...     def read(self, start):
        ...         rows = [(n,) for n in range(start["n"], 3)]
        ...         return iter(rows), {"n": 3}
        >>> class NumberSource(DataSource):
        ...     def schema(self):
        ...         return "n int"
        ...     def simpleStreamReader(self, schema):
        ...         return Numbers()
        >>> class NumberSpout(DataSourceSpout):
        ...     source = NumberSource
        >>> from pystorm_source.testing import run_topology
        >>> class Counting(Topology):
        ...     numbers = NumberSpout.spec()
        >>> run_topology(Counting).rows("numbers")
        [(0,), (1,), (2,)]
    """

    source: ClassVar[type[DataSource] | None] = None
    """A streaming data source."""
    source_options: Mapping[str, str] = {}
    """Its options."""

    _pystorm_ranges: Ranges | None = None
    # ``outputs``, if they were asked for from ``source``.
    _pystorm_columns: ClassVar[list[str] | None] = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        if cls.source is not None and "outputs" not in cls.__dict__ and cls._pystorm_has_other_columns():
            cls.outputs = _columns(_schema(cls._pystorm_source(cls.source_options)))
            cls._pystorm_columns = cls.outputs
        super().__init_subclass__(**kwargs)

    def read(self, cursor: Any, limit: int) -> tuple[Iterable[Any], Any]:
        """Returns the next rows of the source.

        Args:
            cursor (Any): what an earlier call returned; None: the source's initial offset.
            limit (int): rows that are wanted. A ``SimpleDataSourceStreamReader`` gives what it has.

        Returns:
            tuple[Iterable[Any], Any]: rows, and where the next ones begin.

        Raises:
            TopologyError: ``source`` has no streaming reader, or one that only a newer Spark can call.
        """
        if self._pystorm_ranges is None:
            source = self._pystorm_source(self.source_options)
            schema = _schema(source)
            self._pystorm_ranges = Ranges(_reader(source, schema), schema.names)
        rows, following, self._pystorm_has_more = self._pystorm_ranges.read(cursor, limit)
        return rows, following

    def cleanup(self) -> None:
        """Ends the source's reader."""
        if self._pystorm_ranges is not None:
            self._pystorm_ranges.stop()

    def _pystorm_batch_ended(self, is_journaled: bool) -> None:
        # The cursor in the journal: the last read may belong to an attempt that does not count.
        cursor = self._pystorm_all_pages().cursor_of(self.partition)
        if is_journaled and self._pystorm_ranges is not None and cursor is not None:
            self._pystorm_ranges.commit(cursor)

    @classmethod
    def _pystorm_has_other_columns(cls) -> bool:
        """Whether there are no columns yet, or they are of a base's source, and this class defines another source or
        other options."""
        own = not cls.__dict__.keys().isdisjoint(("source", "source_options"))
        return not cls.outputs or (own and cls.outputs is cls._pystorm_columns)

    @classmethod
    def _pystorm_source(cls, options: Mapping[str, str]) -> DataSource:
        source: Any = cls.source
        if not (isinstance(source, type) and issubclass(source, DataSource)):
            raise TopologyError(
                f"{cls.__name__} must set `source` to a class of pyspark.sql.datasource.DataSource. "
                f"Given: {given(source)}",
                code="PYSTORM_INVALID_COMPONENT",
            )
        return source(CaseInsensitiveDict({name: str(value) for name, value in options.items()}))


def _reader(source: DataSource, schema: StructType) -> DataSourceStreamReader | SimpleDataSourceStreamReader:
    for method in (source.streamReader, source.simpleStreamReader):
        try:
            return method(schema)
        except PySparkNotImplementedError:
            pass
    raise TopologyError(
        f"{type(source).__name__} cannot be read as a stream: it defines neither streamReader nor simpleStreamReader",
        code="PYSTORM_INVALID_COMPONENT",
    )


def _schema(source: DataSource) -> StructType:
    schema = source.schema()
    if isinstance(schema, StructType):
        return schema
    # Not StructType.fromDDL, which needs a JVM: a task has no JVM.
    return from_arrow_schema(pa.schema(list(arrow_type(schema, f"schema of {type(source).__name__}"))))


def _columns(schema: StructType) -> list[str]:
    return [f"{field.name} {field.dataType.simpleString()}{'' if field.nullable else ' not null'}" for field in schema]
