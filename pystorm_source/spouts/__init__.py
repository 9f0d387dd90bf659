"""Ready-made spouts; one contract, a file each."""

from pystorm_source.spouts.events import EventStreamSpout
from pystorm_source.spouts.files import DeadLetterSpout, FilesSpout
from pystorm_source.spouts.http import HttpSpout
from pystorm_source.spouts.kafka import KafkaBatchSpout, KafkaSpout
from pystorm_source.spouts.memory import MemorySpout
from pystorm_source.spouts.mqtt import MqttSpout
from pystorm_source.spouts.nats import NatsSpout
from pystorm_source.spouts.objects import ObjectsSpout
from pystorm_source.spouts.postgres import PostgresSpout
from pystorm_source.spouts.rate import RateSpout
from pystorm_source.spouts.redis_stream import RedisStreamSpout
from pystorm_source.spouts.socket import SocketSpout
from pystorm_source.spouts.sqs import SqsSpout

__all__ = [
    "DeadLetterSpout",
    "EventStreamSpout",
    "FilesSpout",
    "HttpSpout",
    "KafkaBatchSpout",
    "KafkaSpout",
    "MemorySpout",
    "MqttSpout",
    "NatsSpout",
    "ObjectsSpout",
    "PostgresSpout",
    "RateSpout",
    "RedisStreamSpout",
    "SocketSpout",
    "SqsSpout",
]
