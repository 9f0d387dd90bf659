"""A spout with two streams, each with a bolt of its own."""

from pystorm_source import Bolt, Spout, Stream, Topology


class FancySpout(Spout):
    outputs = [Stream(fields=["good_data"], name="default"), Stream(fields=["bad_data"], name="errors")]
    readings = (20, 21, "n/a", 22, None)

    def initialize(self, stormconf, context):
        self.left = list(self.readings)

    def next_tuple(self):
        if not self.left:
            return
        reading = self.left.pop(0)
        if isinstance(reading, int):
            self.emit([reading])
        else:
            self.emit([reading], stream="errors")


class GoodDataBolt(Bolt):
    outputs = ["fahrenheit"]

    def process(self, tup):
        self.emit([tup.values.good_data * 9 / 5 + 32])


class BadDataBolt(Bolt):
    outputs = ["report"]

    def process(self, tup):
        self.emit([f"{tup.component}.{tup.stream}: {tup.values.bad_data!r}"])


class FancyStreams(Topology):
    fancy_spout = FancySpout.spec()
    good = GoodDataBolt.spec(inputs=[fancy_spout])
    bad = BadDataBolt.spec(inputs=[fancy_spout["errors"]])
