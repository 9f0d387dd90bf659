"""The Kafka example over a real broker."""

from confluent_kafka import Producer

from examples.kafka_orders import KafkaOrders
from pystorm_source.testing import run_topology


def test_orders_come_by_customer_and_strange_ones_apart(kafka):
    kafka.create("shop.orders")
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "log_level": 0})
    for value in ('{"item": "pear", "price": 2.5, "pieces": 4}', '{"item": "fig", "price": 3}', "no order", None):
        producer.produce("shop.orders", value, key="me")
    assert producer.flush(30) == 0
    result = run_topology(KafkaOrders, {"kafka.bootstrap.servers": kafka.bootstrap})
    assert result.rows("by_customer") == [("me", "pear", 10.0), ("me", "fig", 3.0)]
    assert result.rows("by_customer", "strange") == [(0, 2), (0, 3)]
