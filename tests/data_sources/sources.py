"""Streaming data sources as they are written for Spark, over a folder whose ``count`` is the number of rows; spouts."""

from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition, SimpleDataSourceStreamReader
from pyspark.sql.types import IntegerType, StringType, StructType

from pystorm_source import Topology
from pystorm_source.data_sources import DataSourceSpout

SPLIT = 7
"""Rows of a partition."""


class World:
    def __init__(self, options):
        self.path = Path(options["PATH"])  # names of options have no case

    @property
    def count(self):
        return int((self.path / "count").read_text())

    def note(self, what):
        with (self.path / "log").open("a") as file:
            file.write(f"{what}\n")


class Part(InputPartition):
    def __init__(self, first, end):
        self.first, self.end = first, end


class Parts(DataSourceStreamReader):
    """As for Spark 4.0. Every second partition gives Arrow's batches."""

    def __init__(self, options):
        self.world = World(options)

    def initialOffset(self):
        return {"n": 0}

    def latestOffset(self):
        return {"n": self.world.count}

    def partitions(self, start, end):
        firsts = range(start["n"], end["n"], SPLIT)
        return [Part(first, min(first + SPLIT, end["n"])) for first in firsts]

    def read(self, partition):
        self.world.note(f"read {partition.first}")
        found = range(partition.first, partition.end)
        if partition.first % 2:
            yield pa.RecordBatch.from_pydict({"n": list(found), "text": [str(n) for n in found]})
        else:
            yield from ((n, str(n)) for n in found)

    def commit(self, end):
        self.world.note(f"commit {end['n']}")

    def stop(self):
        self.world.note("stop")


class LimitedParts(Parts):
    """As for Spark 4.2: told where it is, and how much is wanted."""

    def latestOffset(self, start, limit):
        self.world.note(f"limit {type(limit).__name__}")
        return {"n": min(start["n"] + 10, self.world.count)}


class Simple(SimpleDataSourceStreamReader):
    def __init__(self, options):
        self.world = World(options)

    def initialOffset(self):
        return {"n": 0}

    def read(self, start):
        self.world.note(f"read {start['n']}")
        count = self.world.count
        return iter([(n, str(n)) for n in range(start["n"], count)]), {"n": count}

    def commit(self, end):
        self.world.note(f"commit {end['n']}")


class PartsSource(DataSource):
    reader = Parts

    def schema(self):
        return StructType().add("n", IntegerType(), nullable=False).add("text", StringType())

    def streamReader(self, schema):
        assert isinstance(schema, StructType) and schema.fieldNames() == ["n", "text"]
        return self.reader(self.options)


class LimitedSource(PartsSource):
    reader = LimitedParts


class SimpleSource(DataSource):
    def schema(self):
        return "n int not null, text string"

    def simpleStreamReader(self, schema):
        assert isinstance(schema, StructType) and schema.fieldNames() == ["n", "text"]
        return Simple(self.options)


class OfPath(DataSourceSpout):
    page_rows = 4
    poll_seconds = 0.02

    def initialize(self, conf, context):
        self.source_options = {"path": conf["path"]}


class PartsSpout(OfPath):
    source = PartsSource


class LimitedSpout(OfPath):
    source = LimitedSource


class SimpleSpout(OfPath):
    source = SimpleSource


class PartsTopology(Topology):
    rows = PartsSpout.spec()


class LimitedTopology(Topology):
    rows = LimitedSpout.spec()


class SimpleTopology(Topology):
    rows = SimpleSpout.spec()
