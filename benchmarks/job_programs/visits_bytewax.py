"""Kafka → stateful_map in two processes → Parquet by a sink by hand: counts exactly once, rows at least once."""

from pathlib import Path

import bytewax.operators as op
import pyarrow as pa
import pyarrow.parquet as pq
from bytewax.connectors.kafka import KafkaSource
from bytewax.dataflow import Dataflow
from bytewax.outputs import FixedPartitionedSink, StatefulSinkPartition
from bytewax.recovery import RecoveryConfig, init_db_dir
from bytewax.testing import cluster_main

from benchmarks.job_programs.workers import in_workers


class ParquetSink(FixedPartitionedSink):
    def __init__(self, out):
        self.out = Path(out)

    def list_parts(self):
        return ["0", "1"]

    def build_part(self, step_id, for_part, resume_state):
        return ParquetPart(self.out, for_part, resume_state or 0)


class ParquetPart(StatefulSinkPartition):
    def __init__(self, out, part, files):
        self.out, self.part, self.files, self.rows = out, part, files, []

    def write_batch(self, values):
        self.rows += values

    def snapshot(self):
        if self.rows:
            visitors, visits = zip(*self.rows, strict=True)
            table = pa.table({"visitor": visitors, "visits": visits})
            pq.write_table(table, self.out / f"{self.part}-{self.files}.parquet")
            self.files, self.rows = self.files + 1, []
        return self.files

    def close(self):
        self.snapshot()


def visitor(message):
    return message.value.decode()


def count(total, message):
    total = (total or 0) + 1
    return total, (message.value.decode(), total)


def worker(servers, topic, out, addresses, number, recovery):
    flow = Dataflow("visits")
    messages = op.input("in", flow, KafkaSource([servers], [topic], tail=False, batch_size=1000))
    totals = op.stateful_map("count", op.key_on("key", messages, visitor), count)
    op.output("out", totals, ParquetSink(out))
    cluster_main(flow, addresses, number, recovery_config=RecoveryConfig(recovery))


def run(servers, topic, out, work, ports, step):
    recovery = Path(work, "recovery")
    Path(out).mkdir()
    recovery.mkdir()
    init_db_dir(recovery, 2)
    addresses = [f"127.0.0.1:{port}" for port in ports]
    in_workers(worker, *((servers, topic, out, addresses, number, recovery) for number in range(2)))
