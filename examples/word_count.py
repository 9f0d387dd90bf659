"""The quickstart project: an endless spout of words, and bolts that count them."""

import itertools
from collections import Counter

from pystorm_source import Bolt, Grouping, Spout, Topology


class WordSpout(Spout):
    outputs = ["word"]

    def initialize(self, stormconf, context):
        self.words = itertools.cycle(["dog", "cat", "zebra", "elephant"])

    def next_tuple(self):
        self.emit([next(self.words)])


class WordCountBolt(Bolt):
    outputs = ["word", "count"]

    def initialize(self, conf, ctx):
        self.counter = Counter()
        self.pid = ctx["taskid"]
        self.total = 0

    def process(self, tup):
        word = tup.values[0]
        self.counter[word] += 10 if word == "dog" else 1
        self.total += 1
        if self.total % 1000 == 0:
            self.logger.info("counted [%s] words [task=%s]", f"{self.total:,}", self.pid)
        self.emit([word, self.counter[word]])


class WordCount(Topology):
    word_spout = WordSpout.spec()
    count_bolt = WordCountBolt.spec(inputs={word_spout: Grouping.fields("word")}, par=2)
