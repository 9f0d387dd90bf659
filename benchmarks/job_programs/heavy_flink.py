"""Numbers and a text → a Python scalar function → CSV, in Flink's batch mode, which commits the files at the end."""

import sys

from pyflink.table import EnvironmentSettings, TableEnvironment
from pyflink.table.udf import udf

from benchmarks.job_programs.heavy import work


@udf(result_type="BIGINT")
def heavy(n, s, loops):
    return work(loops)


def run(rows, text, loops, parallelism, out):
    tables = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    for key, value in {
        "parallelism.default": str(parallelism),
        "python.executable": sys.executable,
        "python.execution-mode": "process",
    }.items():
        tables.get_config().set(key, value)
    tables.execute_sql(f"""CREATE TABLE numbers (n BIGINT, s AS '{text}') WITH (
        'connector' = 'datagen', 'number-of-rows' = '{rows}', 'rows-per-second' = '1000000000',
        'fields.n.kind' = 'sequence', 'fields.n.start' = '0', 'fields.n.end' = '{rows - 1}')""")
    tables.execute_sql(f"""CREATE TABLE done (n BIGINT, x BIGINT) WITH (
        'connector' = 'filesystem', 'path' = '{out}', 'format' = 'csv')""")
    tables.create_temporary_function("heavy", heavy)
    tables.execute_sql(f"INSERT INTO done SELECT n, heavy(n, s, {loops}) FROM numbers").wait()
