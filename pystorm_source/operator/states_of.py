"""The states of a StatefulBolt in a checkpoint, a row for each key."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.types import StructField, StructType

from pystorm_source.errors import ArgumentTypeError, given
from pystorm_source.errors.door import door
from pystorm_source.operator.bucket_states import KEY, PAGE, STATE
from pystorm_source.operator.state_pages import PageForm
from pystorm_source.spark.border import spark_border
from pystorm_source.spark.versions import arrow_schema, map_in_arrow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MAP_KEY, _MAP_VALUE, _WITH_TTL = "user_map_key", "user_map_value", "value"


@door
def states_of(stored: "DataFrame") -> "DataFrame":
    """Returns the states that a ``StatefulBolt`` has in a checkpoint, a row for each key.

    Args:
        stored (DataFrame): what Spark's reader of checkpoints gives for the bolt: ``spark.read.format("statestore")``
            with ``stateVarName``, the bolt's name, and if you like ``batchId`` or ``operatorId``.

    Returns:
        DataFrame: the columns ``key`` and ``state``, structs of the fields of the bolt's key and of its
        ``state_fields``. With timers, ``state.__timer`` is when the timer of the key is due, in milliseconds since
        1970.

    Raises:
        ArgumentTypeError: something else is given.

    Example:
        >>> from pystorm_source import states_of
        >>> states_of(spark.range(1))
        Traceback (most recent call last):
        pystorm_source.errors.ArgumentTypeError: [PYSTORM_INVALID_ARGUMENT] states_of takes ...
    """
    from pyspark.sql import functions as F

    schema: Any = getattr(stored, "schema", ())
    value: Any = schema[_MAP_VALUE].dataType if _MAP_VALUE in getattr(schema, "names", ()) else None
    names = getattr(value, "names", None)
    if names == [_WITH_TTL, "ttlExpirationMs"]:  # of a bolt with state_ttl_secs
        return stored.select(F.col(_MAP_KEY).alias(KEY), F.col(_MAP_VALUE).getField(_WITH_TTL).alias(STATE))
    if names != [PAGE, KEY, STATE]:
        raise ArgumentTypeError(
            "states_of takes spark.read.format('statestore').option('stateVarName', 'the name of a StatefulBolt')"
            f".load(checkpoint). Given: {given(stored)}",
            code="PYSTORM_INVALID_ARGUMENT",
        )
    rows = StructType([StructField(name, value[name].dataType) for name in (KEY, STATE)])
    pages = stored.select(F.col(_MAP_VALUE).getField(PAGE).alias(PAGE))
    return map_in_arrow(pages, _KeysOfPages(arrow_schema(rows)), rows)


@dataclass(frozen=True)
class _KeysOfPages:
    """What Spark calls with pages. ``schema``: of the rows."""

    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with spark_border():
            key, state = (self.schema.field(name).type for name in (KEY, STATE))
            form = PageForm(*([field.type for field in part] for part in (key, state)))
            for batch in batches:
                for page in batch.column(0).to_pylist():
                    columns = form.batch(page).columns
                    structs = (
                        pa.StructArray.from_arrays(part, fields=list(type))
                        for part, type in ((columns[: len(key)], key), (columns[len(key) :], state))
                    )
                    yield pa.RecordBatch.from_arrays(list(structs), schema=self.schema)
