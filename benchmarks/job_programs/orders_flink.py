"""Kafka → a Python table function → Parquet, exactly once by Flink's checkpoints and file sink."""

import sys

from pyflink.table import EnvironmentSettings, TableEnvironment
from pyflink.table.udf import udtf

from benchmarks.job_programs.orders import priced


@udtf(result_types=["BIGINT", "STRING", "STRING", "STRING", "BIGINT"])
def price(value):
    row = priced(value)
    if row:
        yield row


def run(servers, topic, jars, mode, out, work, step, bounded="latest-offset", checkpoints="10s"):
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for key, value in {
        "parallelism.default": "2",
        "pipeline.jars": jars,
        "python.executable": sys.executable,
        "restart-strategy.type": "fixed-delay",
        "python.execution-mode": mode,
        "execution.checkpointing.interval": checkpoints,
        "execution.checkpointing.dir": f"file://{work}",
    }.items():
        tables.get_config().set(key, value)
    tables.execute_sql(f"""CREATE TABLE orders (data BYTES) WITH (
        'connector' = 'kafka', 'properties.bootstrap.servers' = '{servers}', 'topic' = '{topic}', 'format' = 'raw',
        'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = '{bounded}')""")
    tables.execute_sql(f"""CREATE TABLE priced (
        number BIGINT, customer STRING, category STRING, region STRING, cents BIGINT) WITH (
        'connector' = 'filesystem', 'path' = '{out}', 'format' = 'parquet')""")
    tables.create_temporary_function("price", price)
    tables.execute_sql("""INSERT INTO priced SELECT p.* FROM orders,
        LATERAL TABLE(price(data)) AS p(number, customer, category, region, cents)""").wait()
