"""The data source that Spark knows as ``pystorm``: one ``.load()``, its schema and its readers."""

from collections.abc import Mapping
from typing import Any, ClassVar

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from pystorm_source.plan import Plan
from pystorm_source.source.driver.batch_reader import PystormBatchReader
from pystorm_source.source.driver.refused_reader import RefusedReader
from pystorm_source.source.driver.stream_reader import PystormStreamReader
from pystorm_source.source.request import ReadRequest
from pystorm_source.source.spark_border import spark_border


class PystormDataSource(DataSource):
    """``spark.readStream.format("pystorm").option("topology", "package.module:Class").load()``.

    Everything that can be known is checked when it is built, at ``.load()``. Subclasses made by ``register`` carry a
    plan.
    """

    format_name: ClassVar[str] = "pystorm"
    plan: ClassVar[Plan | None] = None

    @spark_border()
    def __init__(self, options: Mapping[str, str]):
        """Raises OptionError, TopologyError or SchemaError with key, value and remedy."""
        self.request = ReadRequest.of(dict(options), type(self).format_name, type(self).plan)

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return cls.format_name

    @spark_border()
    def schema(self) -> StructType:
        """The columns that the topology declares; not asked if the user gives a schema. Raises SchemaError."""
        return self.request.rows.schema()

    @spark_border()
    def reader(self, schema: StructType) -> DataSourceReader:
        """Batch. Raises SchemaError if the user's schema does not fit, OptionError if an option is for streams
        only."""
        return PystormBatchReader(self.request, self.request.rows.output(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Streaming. Errors of the user's schema are raised by the first call of the reader."""
        try:
            self.request.check_streaming()
            return PystormStreamReader(self.request, self.request.rows.output(schema))
        except Exception as error:
            return RefusedReader(error)

    def __getstate__(self) -> dict[str, Any]:
        return {"request": self.request}
