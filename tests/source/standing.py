"""Topologies that stand still, each in another way."""

import threading
import time

from pystorm_source import Bolt, Topology
from pystorm_source.spouts import MemorySpout

LONG = 600


class SleepingBolt(Bolt):
    outputs = ["n long"]

    def process(self, tup):
        self.wait()

    def wait(self):
        time.sleep(LONG)  # the line that is shown


class LockedBolt(Bolt):
    outputs = ["n long"]

    def initialize(self, conf, context):
        self.lock = threading.Lock()

    def process(self, tup):
        with self.lock, self.lock:  # never gets it
            self.emit(tup.values)


class ComputingBolt(Bolt):
    outputs = ["n long"]

    def process(self, tup):
        while True:
            sum(range(1000))


class PassingBolt(Bolt):
    outputs = ["n long"]

    def process(self, tup):
        self.emit(tup.values)


def numbers():
    return MemorySpout.spec(fields=["n long"], rows=[[n] for n in range(5000)])


class Sleeps(Topology):
    numbers = numbers()
    passes = PassingBolt.spec(inputs=[numbers])
    sleeps = SleepingBolt.spec(inputs=[passes])


class SleepsInThreads(Sleeps):
    config = {"topology.scheduler": "threads"}


class Locks(Topology):
    numbers = numbers()
    locks = LockedBolt.spec(inputs=[numbers])


class Computes(Topology):
    numbers = numbers()
    computes = ComputingBolt.spec(inputs=[numbers])
