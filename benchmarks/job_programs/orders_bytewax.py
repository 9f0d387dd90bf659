"""Kafka → flat_map in two processes → Parquet by a sink by hand; a crash repeats rows since the last snapshot."""

import time
from datetime import timedelta
from pathlib import Path

import bytewax.operators as op
import pyarrow as pa
import pyarrow.parquet as pq
from bytewax.connectors.kafka import KafkaSource
from bytewax.dataflow import Dataflow
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.recovery import RecoveryConfig, init_db_dir
from bytewax.testing import cluster_main

from benchmarks.job_programs.orders import FIELDS, priced
from benchmarks.job_programs.workers import in_workers

FILE_ROWS = 100_000


class ParquetSink(DynamicSink):
    def __init__(self, out, seconds):
        self.out, self.seconds = Path(out), seconds

    def build(self, step_id, worker_index, worker_count):
        return ParquetPart(self.out, worker_index, self.seconds)


class ParquetPart(StatelessSinkPartition):
    def __init__(self, out, worker, seconds):
        self.out, self.worker, self.files, self.rows = out, worker, 0, []
        self.seconds, self.due = seconds, time.monotonic() + seconds

    def write_batch(self, items):
        self.rows += items
        if len(self.rows) >= FILE_ROWS or time.monotonic() >= self.due:
            self.close()
            self.due = time.monotonic() + self.seconds

    def close(self):
        if self.rows:
            table = pa.table([pa.array(column) for column in zip(*self.rows, strict=True)], names=FIELDS)
            pq.write_table(table, self.out / f"{self.worker}-{self.files}.parquet")
            self.files, self.rows = self.files + 1, []


def price(message):
    row = priced(message.value)
    return [row] if row else []


def worker(servers, topic, out, addresses, number, recovery, tail, seconds):
    flow = Dataflow("orders")
    messages = op.input("in", flow, KafkaSource([servers], [topic], tail=tail, batch_size=1000))
    op.output("out", op.flat_map("price", messages, price), ParquetSink(out, seconds))
    settings = {"recovery_config": RecoveryConfig(recovery), "epoch_interval": timedelta(seconds=seconds)}
    cluster_main(flow, addresses, number, **settings)


def run(servers, topic, out, work, ports, step, tail=False, seconds=10):
    recovery = Path(work, "recovery")
    Path(out).mkdir()
    recovery.mkdir()
    init_db_dir(recovery, 2)
    addresses = [f"127.0.0.1:{port}" for port in ports]
    more = (recovery, tail, seconds)
    in_workers(worker, *((servers, topic, out, addresses, number, *more) for number in range(2)))
