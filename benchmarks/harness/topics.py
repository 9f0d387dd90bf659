"""Topics of Kafka that are filled before anything is measured."""

from collections.abc import Callable

from confluent_kafka import Producer

from testbed.kafka_broker import KafkaCluster


def fill(cluster: KafkaCluster, topic: str, records: int, value_of: Callable[[int], bytes], partitions: int) -> None:
    """A new topic with so many records, one by one to its partitions."""
    cluster.create(topic, partitions)
    settings = {"linger.ms": 50, "batch.size": 1_000_000, "queue.buffering.max.messages": 2_000_000, "log_level": 0}
    producer = Producer({"bootstrap.servers": cluster.bootstrap, **settings})
    for number in range(records):
        if number % 50_000 == 0:
            producer.poll(0)
            if len(producer) > 1_000_000:
                producer.flush()
        producer.produce(topic, value_of(number), partition=number % partitions)
    producer.flush()
