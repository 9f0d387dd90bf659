"""The data source that Spark knows as ``pystorm``: one ``.load()``, its schema and its readers."""

from collections.abc import Mapping
from typing import Any, ClassVar

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from pystorm_source.api.input import not_a_source
from pystorm_source.options.hidden import revealed
from pystorm_source.plan import Plan
from pystorm_source.sink.request import SinkRequest, no_input
from pystorm_source.sink.writer import batch_writer, stream_writer
from pystorm_source.source.driver.batch_reader import PystormBatchReader
from pystorm_source.source.driver.refused_reader import RefusedReader
from pystorm_source.source.driver.stream_reader import PystormStreamReader
from pystorm_source.source.request import ReadRequest
from pystorm_source.spark.border import spark_border


class PystormDataSource(DataSource):
    """``spark.readStream.format("pystorm").option("topology", "package.module:Class").load()``; for a topology that
    begins with an ``Input``, ``df.writeStream.format("pystorm")`` with that option.

    Everything that can be known is checked when it is built, at ``.load()`` or at the write. Subclasses made by
    ``register`` carry a plan.
    """

    format_name: ClassVar[str] = "pystorm"
    plan: ClassVar[Plan | None] = None

    @spark_border()
    def __init__(self, options: Mapping[str, str]):
        """Raises OptionError, TopologyError or SchemaError with key, value and remedy."""
        given, name, plan = revealed(options), type(self).format_name, type(self).plan
        self.request: ReadRequest | SinkRequest = SinkRequest.of(given, name, plan) or ReadRequest.of(given, name, plan)

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return cls.format_name

    @spark_border()
    def schema(self) -> StructType:
        """The columns that the topology declares; not asked if the user gives a schema. Raises SchemaError, and
        TopologyError if the topology is a sink's."""
        return self._to_read.rows.schema()

    @spark_border()
    def reader(self, schema: StructType) -> DataSourceReader:
        """Batch. Raises SchemaError if the user's schema does not fit, OptionError if an option is for streams
        only."""
        return PystormBatchReader(self._to_read, self._to_read.rows.output(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Streaming. Errors of the user's schema are raised by the first call of the reader."""
        try:
            self._to_read.check_streaming()
            return PystormStreamReader(self._to_read, self._to_read.rows.output(schema))
        except Exception as error:
            return RefusedReader(error)

    @spark_border()
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Batch. Raises TopologyError if the topology is a source's, SchemaError if its Input's columns are not in
        the schema, OptionError for another mode than append."""
        return batch_writer(self._to_write, schema, overwrite)

    @spark_border()
    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Streaming, once for each micro-batch and once for its commit. Raises as ``writer``."""
        return stream_writer(self._to_write, schema, overwrite)

    @property
    def _to_read(self) -> ReadRequest:
        if isinstance(self.request, SinkRequest):
            raise not_a_source(self.request.plan.name)
        return self.request

    @property
    def _to_write(self) -> SinkRequest:
        if isinstance(self.request, ReadRequest):
            raise no_input(self.request.plan.name)
        return self.request

    def __getstate__(self) -> dict[str, Any]:
        return {"request": self.request}
