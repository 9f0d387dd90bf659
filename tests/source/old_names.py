"""A topology as streamparse's users have it, which cannot be edited but for its first two lines."""

from pystorm_source import compat

compat.install()

from streamparse import Grouping, Spout, Stream, Topology, Tuple  # noqa: E402
from streamparse.bolt import BatchingBolt  # noqa: E402


class WordSpout(Spout):
    outputs = ["word", Stream(fields=["total"], name="totals")]

    def initialize(self, stormconf, context):
        self.words = ["dog", "cat", "dog"]

    def next_tuple(self):
        if self.words:
            self.emit([self.words.pop()])


class WordCountBolt(BatchingBolt):
    outputs = ["word", "count"]

    def group_key(self, tup):
        assert isinstance(tup, Tuple)
        return tup.values.word

    def process_batch(self, key, tups):
        self.emit([key, len(tups)])


class WordCount(Topology):
    word_spout = WordSpout.spec()
    count_bolt = WordCountBolt.spec(inputs={word_spout: Grouping.fields("word")}, par=2)
