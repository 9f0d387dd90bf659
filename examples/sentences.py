"""The sentence splitter of the tutorial: it emits lists of one word, and fails what the base class then acks, too."""

import re
from collections import defaultdict

from pystorm_source import Bolt, Grouping, ReliableSpout, Topology


class SentenceSpout(ReliableSpout):
    outputs = ["sentence"]
    sentences = ("the cow jumped, over the moon!", "", "the moon")

    def initialize(self, stormconf, context):
        self.left = list(enumerate(self.sentences))

    def next_tuple(self):
        if not self.left:
            return
        number, sentence = self.left.pop(0)
        self.emit([sentence], tup_id=number)


class SentenceSplitterBolt(Bolt):
    outputs = ["word"]

    def process(self, tup):
        sentence = re.sub(r"[,.;!\?]", "", tup.values[0])
        words = [[word.strip()] for word in sentence.split(" ") if word.strip()]
        if not words:
            # auto_ack is on: the return below acks the tuple that this has failed.
            self.fail(tup)
            return
        for word in words:
            self.emit([word])


class WordCountBolt(Bolt):
    outputs = ["word", "count"]

    def initialize(self, conf, ctx):
        self.counts = defaultdict(int)

    def process(self, tup):
        (word,) = tup.values.word
        self.counts[word] += 1
        self.emit([word, self.counts[word]])


class Sentences(Topology):
    sentence_spout = SentenceSpout.spec()
    splitter = SentenceSplitterBolt.spec(inputs=[sentence_spout], par=2)
    counter = WordCountBolt.spec(inputs={splitter: Grouping.fields("word")}, par=3)
