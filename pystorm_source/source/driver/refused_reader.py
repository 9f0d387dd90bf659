"""A stream reader that only raises the error of its creation."""

from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from pystorm_source.spark.border import spark_border
from pystorm_source.spark.versions import SupportsTriggerAvailableNow


class RefusedReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Raises ``error`` at the first call.

    ``streamReader()`` sees a user's schema first, but its exceptions never reach the user: Spark's runner (4.0 to 4.3)
    ends in ``finally: reader.stop()`` with no ``reader``, an UnboundLocalError that takes the place of the true error.
    """

    def __init__(self, error: Exception):
        self._error = error

    def initialOffset(self) -> dict[str, Any]:
        self._refuse()

    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, Any]:
        self._refuse()

    def getDefaultReadLimit(self) -> Any:
        self._refuse()

    def prepareForTriggerAvailableNow(self) -> None:
        self._refuse()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        self._refuse()

    def read(self, partition: InputPartition) -> Iterator[Any]:
        self._refuse()

    @spark_border()
    def _refuse(self) -> NoReturn:
        raise self._error
