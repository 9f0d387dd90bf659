"""Groupings through Spark: objects travel, keys find their task in whatever process."""

import pytest

from cython_core.routing.route import java_deep_hash
from pystorm_source import Bolt, Grouping, Stream, Topology, read
from pystorm_source.spouts import MemorySpout

pytestmark = [pytest.mark.spark, pytest.mark.timeout(180)]

NUMBERS = MemorySpout.spec(fields=["word string", "n long"], rows=[[f"w{n % 7}", n] for n in range(60)], partitions=3)


class Where(Bolt):
    outputs = ["task long", "word string", "n long"]

    def initialize(self, conf, context):
        self.task = context["taskid"]

    def process(self, tup):
        self.emit((self.task, *tup.values))


def test_java_s_hash_is_an_option_of_the_reader(spark):
    class Keyed(Topology):
        numbers = NUMBERS
        where = Where.spec(inputs={numbers: Grouping.fields("word")}, par=4)

    rows = read(spark, Keyed, **{"topology.fields.grouping.hash": "java"}).collect()
    assert sorted(row.n for row in rows) == list(range(60))
    assert all(row.task == 2 + java_deep_hash([row.word]) % 4 for row in rows)


def test_an_object_of_a_notebook_chooses_in_every_spark_task(spark):
    class Ranges:
        def __init__(self, bounds):
            self.bounds = bounds

        def prepare(self, context, stream, targets):
            self.targets = targets

        def choose_tasks(self, task, values):
            return [self.targets[sum(values[1] >= bound for bound in self.bounds)]]

    Ranges.__module__ = "__main__"  # as in a notebook: it travels by value

    class Ranged(Topology):
        numbers = NUMBERS
        where = Where.spec(inputs={numbers: Grouping.custom(Ranges([10, 40]))}, par=3)

    rows = read(spark, Ranged).collect()
    assert sorted((row.task, row.n) for row in rows) == [(2 + (n >= 10) + (n >= 40), n) for n in range(60)]


def test_a_direct_stream_may_be_the_output(spark):
    class Names(Bolt):
        outputs = [Stream(["word string", "n long"], direct=True)]

        def process(self, tup):
            self.emit(tup.values, direct_task=1)

    class Named(Topology):
        numbers = NUMBERS
        names = Names.spec(inputs=[numbers])

    assert sorted(row.n for row in read(spark, Named).collect()) == list(range(60))
