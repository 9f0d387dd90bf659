"""Topologies by chance, whose rows do not depend on where and in which order tuples are processed.

Their bolts are functions of a tuple, or of all tuples of a key behind a grouping by that key.
"""

from random import Random

from pystorm_source import BatchingBolt, Bolt, Grouping, Topology
from pystorm_source.spouts import MemorySpout

FIELDS = ["key string", "n long"]


class Step(Bolt):
    """A tuple with another key."""

    outputs = FIELDS

    def process(self, tup):
        key, n = tup.values
        self.emit([f"{key[0]}{n % 3}", n + 1])


class Twice(Bolt):
    outputs = FIELDS

    def process(self, tup):
        for i in (0, 1):
            self.emit([tup.values.key, 2 * tup.values.n + i])


class Flaky(Bolt):
    """Fails each tuple that it sees for the first time, behind its emit."""

    outputs = FIELDS
    exit_on_exception = False

    def initialize(self, conf, context):
        self.seen = set()

    def process(self, tup):
        self.emit([tup.values.key, -tup.values.n])
        if tup.values not in self.seen:
            self.seen.add(tup.values)
            raise ValueError("the first time")


class Sums(BatchingBolt):
    """The sum of each key, at the end of the micro-batch."""

    outputs = FIELDS

    def group_key(self, tup):
        return tup.values.key

    def process_batch(self, key, tups):
        self.emit([key, sum(tup.values.n for tup in tups)])


class Named(Bolt):
    """Says where a tuple comes from."""

    outputs = ["of string", "key string", "n long"]

    def process(self, tup):
        self.emit([f"{tup.component}.{tup.stream}", *tup.values])


class Silent(Bolt):
    outputs = []

    def process(self, tup):
        pass


ANY = [Grouping.SHUFFLE, Grouping.fields("key"), Grouping.fields("n", "key"), Grouping.GLOBAL, Grouping.NONE]
CONFIG = {"topology.max.spout.retries": 100}


def random_topology(seed: int) -> type[Topology]:
    """One to three spouts, up to six bolts behind them, any groupings; at the end of each stream a name of it."""
    chance = Random(seed)
    specs = {}
    for i in range(chance.choice([1, 1, 2, 3])):
        rows = [[chance.choice("abcd"), chance.randint(-9, 9)] for _ in range(chance.choice([1, 5, 30]))]
        specs[f"spout{i}"] = MemorySpout.spec(fields=FIELDS, rows=rows)
    for i in range(chance.randint(1, 6)):
        producers = chance.sample(sorted(specs), min(len(specs), chance.choice([1, 1, 2])))
        cls = chance.choice([Step, Step, Twice, Flaky, Sums])
        if cls is Sums:
            grouping = chance.choice([Grouping.fields("key"), Grouping.GLOBAL])
            inputs = {specs[producer]: grouping for producer in producers}
        else:
            inputs = {specs[producer]: chance.choice(ANY) for producer in producers}
        specs[f"bolt{i}"] = cls.spec(inputs=inputs, par=chance.choice([1, 1, 2]))
    taken = chance.sample(sorted(specs), chance.randint(1, len(specs)))
    specs["named"] = Named.spec(inputs={specs[name]: chance.choice(ANY) for name in taken})
    specs["silent"] = Silent.spec(inputs={specs[chance.choice(sorted(taken))]: Grouping.ALL}, par=2)
    return type(f"Random{seed}", (Topology,), {**specs, "config": CONFIG})
