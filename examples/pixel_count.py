"""Hits of tracking pixels: messages of JSON are read, counted by address, and told at every tick."""

import json
from collections import Counter

from pystorm_source import Bolt, Grouping, Spout, Topology


class PixelSpout(Spout):
    outputs = ["message"]

    def initialize(self, stormconf, context):
        self.left = []

    def next_tuple(self):
        if not self.left:
            return
        self.emit([self.left.pop(0)])


class PixelDeserializerBolt(Bolt):
    outputs = ["ip", "ts", "url"]

    def process(self, tup):
        message = json.loads(tup.values.message)
        self.emit([message["ip"], message["ts"], message["url"]])


class PixelCounterBolt(Bolt):
    outputs = ["url", "count"]

    def initialize(self, conf, ctx):
        self.pixel_counts = Counter()

    def process(self, tup):
        self.pixel_counts[tup.values.url] += 1

    def process_tick(self, freq):
        for url, count in sorted(self.pixel_counts.items()):
            self.emit([url, count])
        self.pixel_counts.clear()


class PixelCount(Topology):
    pixel_spout = PixelSpout.spec()
    deserializer = PixelDeserializerBolt.spec(inputs=[pixel_spout])
    counter = PixelCounterBolt.spec(
        inputs={deserializer: Grouping.fields("url")}, config={"topology.tick.tuple.freq.secs": 10}, par=2
    )
