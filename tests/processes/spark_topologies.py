"""Topologies with a bolt in processes of its own, for Spark's Python processes to import."""

import os
import signal

from pystorm_source import Bolt, Input, PartitionedSpout, Topology

TOTAL = 20_000


class Numbers(PartitionedSpout):
    outputs = ["n long"]
    total = TOTAL

    def partitions(self):
        return ["p"]

    def latest(self, partition):
        return self.total

    def open(self, partition, start, end):
        self.at, self.end = start, end

    def next_tuple(self):
        if self.at == self.end:
            return False
        self.emit((self.at,), self.at)
        self.at += 1


class Squares(Bolt):
    outputs = ["n long", "square long", "pid long", "parent long"]

    def initialize(self, conf, context):
        self.flag = conf.get("app.killed.once", "")

    def process(self, tup):
        n = tup.values.n
        if n == 7_777 and self.flag and os.path.exists(self.flag):
            os.unlink(self.flag)
            os.kill(os.getpid(), signal.SIGKILL)
        self.emit((n, n * n, os.getpid(), os.getppid()))


class Squared(Topology):
    numbers = Numbers.spec()
    squares = Squares.spec(inputs=[numbers], processes=2)


class SquaredRows(Topology):
    rows = Input.spec(["n long"])
    squares = Squares.spec(inputs=[rows], processes=2)
