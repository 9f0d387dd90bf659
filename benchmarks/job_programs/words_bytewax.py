"""Text files → flat_map → count_final, in two processes → Parquet by a sink by hand."""

from pathlib import Path

import bytewax.operators as op
import pyarrow as pa
import pyarrow.parquet as pq
from bytewax.connectors.files import DirSource
from bytewax.dataflow import Dataflow
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.testing import cluster_main

from benchmarks.job_programs.workers import in_workers


class ParquetSink(DynamicSink):
    def __init__(self, out):
        self.out = Path(out)

    def build(self, step_id, worker_index, worker_count):
        return ParquetPart(self.out / f"{worker_index}.parquet")


class ParquetPart(StatelessSinkPartition):
    def __init__(self, path):
        self.path, self.rows = path, []

    def write_batch(self, items):
        self.rows += items

    def close(self):
        words, counts = zip(*self.rows, strict=True)
        pq.write_table(pa.table({"word": words, "n": counts}), self.path)


def same(word):
    return word


def worker(text, out, addresses, number):
    flow = Dataflow("words")
    lines = op.input("in", flow, DirSource(Path(text), batch_size=1000))
    words = op.flat_map("split", lines, str.split)
    op.output("out", op.count_final("count", words, same), ParquetSink(out))
    cluster_main(flow, addresses, number)


def run(text, out, work, ports):
    Path(out).mkdir()
    addresses = [f"127.0.0.1:{port}" for port in ports]
    in_workers(worker, *((text, out, addresses, number) for number in range(2)))
