"""spark-submit of a file, on a cluster of two executor processes."""

import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet
import pyspark
import pytest

JOB = Path(__file__).parent / "jobs" / "numbers_job.py"

pytestmark = [pytest.mark.spark, pytest.mark.timeout(240)]


@pytest.mark.campaign
def test_a_submitted_file_runs_on_two_executors(tmp_path):
    """Only the job names the master, so the driver listens for reports at all addresses, and tasks find it by Spark's
    name. (Named on the command line, it is local, and they use the loopback: tests/channel/reports/test_endpoint.py.)
    """
    home = Path(pyspark.__file__).parent
    done = subprocess.run(
        [
            *(str(home / "bin" / "spark-submit"), "--conf", "spark.driver.bindAddress=127.0.0.1"),
            *("--conf", "spark.python.worker.faulthandler.enabled=true"),
            *(str(JOB), str(tmp_path), "1000", "1000", "local-cluster[2,1,1024]"),
        ],
        env={
            **os.environ,
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
        },
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert "acked 2000" in done.stdout.splitlines(), "the executors' reports find the driver"
    rows = sorted(tuple(row.values()) for row in pyarrow.parquet.read_table(tmp_path / "out").to_pylist())
    assert rows == sorted((partition, n, 2 * n) for partition in "ab" for n in range(1000))
