"""Orders of a Kafka topic, as JSON, by customer; what is no order goes to a stream of its own."""

from pystorm_source import Bolt, Stream, Topology
from pystorm_source.spouts import KafkaSpout


class OrderBolt(Bolt):
    outputs = [
        Stream(["customer string", "item string", "total double"]),
        Stream(["partition int", "offset long"], name="strange"),
    ]

    def process(self, tup):
        order = tup.values.value
        if not order or order["price"] is None:
            self.emit((tup.values.partition, tup.values.offset), stream="strange")
            return
        self.emit((tup.values.key, order["item"], order["price"] * (order["pieces"] or 1)))


class KafkaOrders(Topology):
    orders = KafkaSpout.spec(
        subscribe="shop.orders",
        fields=["key string", "value struct<item: string, price: double, pieces: int>", "partition int", "offset long"],
        config={"value.format": "json", "decode.errors": "null"},
    )
    by_customer = OrderBolt.spec(inputs=[orders])
