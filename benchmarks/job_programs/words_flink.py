"""Text files → a Python table function → GROUP BY → Parquet, as a batch."""

import sys

from pyflink.table import EnvironmentSettings, TableEnvironment
from pyflink.table.udf import udtf


@udtf(result_types=["STRING"])
def words_of(line):
    yield from line.split()


def run(text, jars, mode, out, work):
    tables = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    for key, value in {
        "parallelism.default": "2",
        "pipeline.jars": jars,
        "python.executable": sys.executable,
        "restart-strategy.type": "fixed-delay",
        "python.execution-mode": mode,
    }.items():
        tables.get_config().set(key, value)
    tables.execute_sql(f"""CREATE TEMPORARY TABLE lines (line STRING) WITH (
        'connector' = 'filesystem', 'path' = '{text}', 'format' = 'raw')""")
    tables.execute_sql(f"""CREATE TEMPORARY TABLE counts (word STRING, n BIGINT) WITH (
        'connector' = 'filesystem', 'path' = '{out}', 'format' = 'parquet')""")
    tables.create_temporary_function("words_of", words_of)
    tables.execute_sql("""INSERT INTO counts SELECT word, COUNT(*) FROM lines,
        LATERAL TABLE(words_of(line)) AS w(word) GROUP BY word""").wait()
