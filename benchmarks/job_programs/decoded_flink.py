"""Kafka as a table of JSON → a Python table function → Parquet, exactly once by Flink's checkpoints and file sink."""

import sys

from pyflink.table import EnvironmentSettings, TableEnvironment
from pyflink.table.udf import udtf

from benchmarks.job_programs.decoded import priced


@udtf(result_types=["BIGINT", "STRING", "STRING", "STRING", "BIGINT"])
def price(number, customer, item, country, currency, quantity, each, status):
    row = priced(number, customer, item, country, currency, quantity, each, status)
    if row:
        yield row


def run(servers, topic, jars, mode, out, work, step):
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for key, value in {
        "parallelism.default": "2",
        "pipeline.jars": jars,
        "python.executable": sys.executable,
        "restart-strategy.type": "fixed-delay",
        "python.execution-mode": mode,
        "execution.checkpointing.interval": "10s",
        "execution.checkpointing.dir": f"file://{work}",
    }.items():
        tables.get_config().set(key, value)
    tables.execute_sql(f"""CREATE TEMPORARY TABLE orders (
        id BIGINT, customer STRING, item STRING, country STRING, currency STRING, quantity BIGINT, price BIGINT,
        status STRING) WITH (
        'connector' = 'kafka', 'properties.bootstrap.servers' = '{servers}', 'topic' = '{topic}', 'format' = 'json',
        'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset')""")
    tables.execute_sql(f"""CREATE TEMPORARY TABLE priced (
        number BIGINT, customer STRING, category STRING, region STRING, cents BIGINT) WITH (
        'connector' = 'filesystem', 'path' = '{out}', 'format' = 'parquet')""")
    tables.create_temporary_function("price", price)
    tables.execute_sql("""INSERT INTO priced SELECT a, b, c, d, e FROM orders,
        LATERAL TABLE(price(id, customer, item, country, currency, quantity, price, status))
        AS p(a, b, c, d, e)""").wait()
