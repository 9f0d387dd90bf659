"""The same prices behind any DataFrame: a table of files, or a Kafka topic. The columns of the order stay beside them.

found = {"stream": "prices.default", "config": {"prices.url": url}}
priced = apply(spark.readStream.schema(ORDER).parquet("orders/"), PricedOrders, **found)
priced = apply(orders_of(spark, "broker:9092"), PricedOrders, **found)
"""

from examples.http_enrichment import PriceBolt
from pystorm_source import Input, Topology, read_stream
from pystorm_source.spouts import KafkaSpout

ORDER = "order long, item string, number long"


class PricedOrders(Topology):
    rows = Input.spec(ORDER.split(", "))
    prices = PriceBolt.spec(
        inputs=[rows],
        config={"topology.async.max.pending": 200, "topology.async.request.timeout.secs": 5},
    )


class OrderTopic(Topology):
    orders = KafkaSpout.spec(
        subscribe="orders",
        fields=["value struct<order: bigint, item: string, number: bigint>"],
        config={"value.format": "json"},
    )


def orders_of(spark, servers):
    """The orders of a topic, as a stream."""
    return read_stream(spark, OrderTopic, options={"kafka.bootstrap.servers": servers}).select("value.*")
