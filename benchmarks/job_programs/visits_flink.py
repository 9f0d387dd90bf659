"""Kafka → a keyed process function with a value state → Parquet, exactly once by Flink's checkpoints and file sink."""

import sys

from pyflink.common import Row, Types
from pyflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.state import ValueStateDescriptor
from pyflink.table import StreamTableEnvironment

from benchmarks.job_programs.visits import VISITORS


class Count(KeyedProcessFunction):
    def open(self, runtime_context):
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))

    def process_element(self, value, ctx):
        total = (self.total.value() or 0) + 1
        self.total.update(total)
        yield Row(value[0], total)


def run(servers, topic, jars, mode, out, work, step):
    environment = StreamExecutionEnvironment.get_execution_environment()
    environment.add_jars(*jars.split(";"))
    tables = StreamTableEnvironment.create(environment)
    for key, value in {
        "parallelism.default": "2",
        "python.executable": sys.executable,
        "restart-strategy.type": "fixed-delay",
        "python.execution-mode": mode,
        # Each state that is not in the cache costs a request to the JVM, and each that has changed when a bundle ends.
        "python.state.cache-size": str(VISITORS),
        "python.fn-execution.bundle.size": str(VISITORS),
        "python.fn-execution.bundle.time": "10000",
        "execution.checkpointing.interval": "10s",
        "execution.checkpointing.dir": f"file://{work}",
    }.items():
        tables.get_config().set(key, value)
    tables.execute_sql(f"""CREATE TEMPORARY TABLE visits (visitor STRING) WITH (
        'connector' = 'kafka', 'properties.bootstrap.servers' = '{servers}', 'topic' = '{topic}', 'format' = 'raw',
        'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset')""")
    tables.execute_sql(f"""CREATE TEMPORARY TABLE totals (visitor STRING, visits BIGINT) WITH (
        'connector' = 'filesystem', 'path' = '{out}', 'format' = 'parquet')""")
    visits = tables.to_data_stream(tables.from_path("visits"))
    row = Types.ROW_NAMED(["visitor", "visits"], [Types.STRING(), Types.LONG()])
    counted = visits.key_by(lambda visit: visit[0], Types.STRING()).process(Count(), row)
    tables.from_data_stream(counted).execute_insert("totals").wait()
