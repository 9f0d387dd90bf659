"""Spouts that read topics of Kafka: ``KafkaSpout`` emits a tuple for each record, ``KafkaBatchSpout`` Arrow batches."""

from pystorm_source.spouts.kafka.spout import KafkaBatchSpout, KafkaSpout

__all__ = ["KafkaBatchSpout", "KafkaSpout"]
