"""What a task imports before it reads: each module makes a new Python process of Spark begin later."""

import subprocess
import sys

CODE = """
import sys
import pyspark.sql.datasource, pyspark.sql.types, pyarrow
before = set(sys.modules)
import pystorm_source.source.task.read_range
import pystorm_source.worker.worker
print(*sorted(set(sys.modules) - before))
"""


def test_a_task_imports_no_reader_of_configuration_and_no_file_system():
    imported = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True).stdout.split()
    assert "pystorm_source.worker.worker" in imported
    assert {"yaml", "pyarrow.fs", "pyarrow.parquet", "typer", "rich"}.isdisjoint(imported)
