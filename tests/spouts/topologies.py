"""Topologies that the tests run through Spark."""

from pathlib import Path

from pystorm_source import Bolt, Topology
from pystorm_source.spouts import FilesSpout, KafkaBatchSpout, KafkaSpout
from tests.markers import is_first


class Logs(Topology):
    lines = FilesSpout.spec()


class Orders(Topology):
    """Kafka's records, by tuple."""

    orders = KafkaSpout.spec(fields=["value string", "partition int", "offset long"])


class OrderBatches(Topology):
    """The same records, as Arrow batches."""

    orders = KafkaBatchSpout.spec(fields=["value string", "partition int", "offset long"])


class FailsOnce(Bolt):
    """Passes records on; the first one fails its task, unless the file ``fails.once`` is there."""

    outputs = ["value string"]

    def initialize(self, conf, context):
        self.flag = Path(conf["fails.once"])

    def process(self, tup):
        if is_first(self.flag):
            raise RuntimeError("this attempt fails")
        self.emit((tup.values.value,))


class FailingOrders(Topology):
    """A task of it fails once."""

    config = {"topology.max.spout.retries": 0}
    orders = KafkaSpout.spec(fields=["value string"])
    fails = FailsOnce.spec(inputs=[orders])
