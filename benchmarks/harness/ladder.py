"""All benchmarks, lowest rung first: each adds one cost to the one below.

A benchmark is a module of ``benchmarks.rungs`` with ``run(settings) -> Iterator[Record]``. It is imported only to run
it, so ``--list`` needs neither a compiled core nor Spark.
"""

import importlib
from collections.abc import Iterator
from typing import NamedTuple

from benchmarks.harness.record import Record


class Settings(NamedTuple):
    """How thoroughly to measure."""

    quick: bool = False
    """Uses small sizes: shows that the benchmark works, not how fast anything is."""
    runs: int | None = None
    """Runs per case; None: the benchmark's own number."""
    peers: bool = True
    """Whether to measure the peers, too (they are downloaded once)."""
    cases: frozenset[str] = frozenset()
    """The cases to measure, if a benchmark lets you choose; empty: all."""

    def wants(self, case: str) -> bool:
        """Whether to measure this case."""
        return not self.cases or case in self.cases

    def runs_of(self, thorough: int) -> int:
        """Returns the number of runs for a benchmark whose own number is ``thorough``."""
        return self.runs if self.runs is not None else 2 if self.quick else thorough


class Benchmark(NamedTuple):
    """A rung of the ladder."""

    name: str
    meaning: str

    def run(self, settings: Settings) -> Iterator[Record]:
        """Measures; yields one record per case."""
        yield from importlib.import_module(f"benchmarks.rungs.{self.name}").run(settings)


LADDER = (
    Benchmark("core", "tuples/s of topologies in one process without Spark; against pystorm over its pipe and bytewax"),
    Benchmark("async", "requests/s of an AsyncBolt with 20,000 in flight; against aiohttp and httpx by hand"),
    Benchmark("topologies", "tuples/s of topologies in one thread, and in a process per core; against Storm on all"),
    Benchmark("processes", "tuples/s of a heavy bolt in two processes of its own; against one, and a pool by hand"),
    Benchmark("journal", "tuples/s of a journaled socket and a heavy bolt through Spark; against one task of Spark"),
    Benchmark("sources", "rows/s of SQS, Redis, NATS, MQTT through Spark, requests when idle; against bare clients"),
    Benchmark("compiled", "tuples/s of the same with compiled components; against Storm, and those in Python"),
    Benchmark("acker", "tuples/s with acking; against the same without"),
    Benchmark("latency", "seconds from a spout tuple's emit to its ack at half of full load; against Storm"),
    Benchmark("instructions", "machine instructions per tuple of the core's topologies, counted by valgrind"),
    Benchmark("state", "keys/s of a map state into PostgreSQL; against an upsert by hand, which is not exactly once"),
    Benchmark("files", "rows/s of lines, CSV, NDJSON, Parquet as columns; against tuples, and Spark's own sources"),
    Benchmark("objects", "rows/s of small and large Parquet objects, seconds to plan; against Spark's own file source"),
    Benchmark("scale", "how costs grow with partitions, components, tasks, open trees, files, micro-batches, keys"),
    Benchmark("memory", "how flat resident memory stays while a slow consumer takes 50 million tuples"),
    Benchmark("kafka", "records/s from Kafka; against Spark's own source with a Python function, and a bare consumer"),
    Benchmark("admission", "micro-batches until a change is followed, overshoot; of the controller in a simulation"),
    Benchmark("overload", "batch time, goodput and memory of a query with ten times its load; against fixed limits"),
    Benchmark("through_spark", "rows/s of a streaming query; against bare Python data sources"),
    Benchmark(
        "columns", "rows/s of Arrow batches in bolts; against rows, a bare source of Arrow, Spark's with mapInArrow"
    ),
    Benchmark("operator", "rows/s of a topology over a DataFrame; against Spark's UDFs and mapInArrow by hand"),
    Benchmark(
        "stages", "rows/s of a topology that is cut at a fields grouping; against repartition and mapInArrow by hand"
    ),
    Benchmark("keyed", "tuples/s of a bolt that keeps a state for each key; against transformWithState by hand"),
    Benchmark("effects", "rows/s of a sink into a file, as columns and as rows; against a writer by hand"),
    Benchmark("jobs", "rows/s of a core, of whole jobs; against Spark alone, PyFlink, Pathway, Quix Streams, bytewax"),
    Benchmark("row_latency", "milliseconds from Kafka to a readable row, at 1,000 rows/s; against the same packages"),
    Benchmark("word_count", "bytes/s of a text whose words are counted as columns; against Spark alone, bytewax, rows"),
)


def find(name: str) -> Benchmark | None:
    """Returns the benchmark of that name, or None."""
    return next((benchmark for benchmark in LADDER if benchmark.name == name), None)
