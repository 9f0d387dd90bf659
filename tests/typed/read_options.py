"""How a typed user reads a topology; `mypy --strict` must find nothing but what the comments say."""

from pyspark.sql import DataFrame, SparkSession

from pystorm_source import read, read_stream
from pystorm_source.options.typed import ReadOptions
from tests.typed.order_alerts import OrderAlerts


def right(spark: SparkSession) -> list[DataFrame]:
    """Names with dots, open keys, keys of a spout of one's own, and options that are kept for several queries."""
    shared: ReadOptions = {"topology.scheduler": "threads", "batch.target.millis": 500, "startingOffsets": "latest"}
    return [
        read_stream(spark, OrderAlerts, maxOffsetsPerTrigger=500, failOnDataLoss=False, startingOffsets={"orders": {}}),
        read_stream(spark, OrderAlerts, schema="shop string, price long", **shared),
        read_stream(spark, OrderAlerts, options=shared),
        read_stream(spark, OrderAlerts, options={"topology.debug": True, "kafka.client.rack": "a", "orders.total": 4}),
        read(spark, "jobs.orders:OrderAlerts", endingOffsets={"orders": {"north": 4}}, minPartitions=None),
    ]


def wrong(spark: SparkSession) -> None:
    """Each line is an error of mypy's that is expected: if there is none, mypy says that the comment is unused."""
    read_stream(spark, OrderAlerts, maxOfsetsPerTrigger=500)  # type: ignore[call-arg]
    read_stream(spark, OrderAlerts, maxOffsetsPerTrigger="many")  # type: ignore[arg-type]
    read(spark, OrderAlerts, failOnDataLoss="no")  # type: ignore[arg-type]
    read(spark, OrderAlerts, streams="several")  # type: ignore[arg-type]
    debug: ReadOptions = {"topology.debug": 1.5}  # type: ignore[typeddict-item]
    debag: ReadOptions = {"topology.debag": True}  # type: ignore[typeddict-unknown-key]
    read(spark, OrderAlerts, options=[debug, debag])  # type: ignore[arg-type]
