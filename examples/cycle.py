"""Two bolts that feed each other; the one that is declared later is named by its GlobalStreamId."""

from pystorm_source import Bolt, GlobalStreamId, Grouping, Spout, Stream, Topology


class StartSpout(Spout):
    outputs = ["start", "n", "steps"]

    def initialize(self, stormconf, context):
        self.left = [1, 6, 7, 27]

    def next_tuple(self):
        if not self.left:
            return
        start = self.left.pop(0)
        self.emit([start, start, 0])


class EvenBolt(Bolt):
    """Halves even numbers, hands on odd ones, tells when one has come to 1."""

    outputs = [Stream(fields=["start", "n", "steps"]), Stream(fields=["start", "steps"], name="done")]

    def process(self, tup):
        start, n, steps = tup.values
        while n % 2 == 0:
            n, steps = n // 2, steps + 1
        if n == 1:
            self.emit([start, steps], stream="done")
        else:
            self.emit([start, n, steps])


class OddBolt(Bolt):
    outputs = ["start", "n", "steps"]

    def process(self, tup):
        start, n, steps = tup.values
        self.emit([start, 3 * n + 1, steps + 1])


class Cycle(Topology):
    start_spout = StartSpout.spec()
    even_bolt = EvenBolt.spec(
        name="even",
        inputs={start_spout: Grouping.SHUFFLE, GlobalStreamId("odd", "default"): Grouping.fields("start")},
        par=2,
    )
    odd_bolt = OddBolt.spec(name="odd", inputs=[even_bolt])
