"""Sessions of Spark for the rounds."""

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType

import pyspark
from pyspark import SparkContext
from pyspark.sql import SparkSession

from pystorm_source.operator.state_needs import PROVIDER, ROCKS_DB
from pystorm_source.source.data_source import PystormDataSource
from pystorm_source.spark.java import ensure_java
from testbed.spark_classes import QUICK

ROOT = Path(__file__).resolve().parents[2]
CLUSTER = "local-cluster[2,1,1024]"
LOCAL = "local[2,3]"
TWO_HOSTS = "two hosts"


def environment(folder: Path) -> dict[str, str]:
    """What Spark's processes need in their environment; temporary files go below ``folder``."""
    (folder / "tmp").mkdir(parents=True, exist_ok=True)
    return {
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_HOME": str(spark_home(folder / "home")),
        "TMPDIR": str(folder / "tmp"),
    }


def spark_home(folder: Path) -> Path:
    """The installed Spark under a path of its own: a local cluster writes its executors' logs below that."""
    folder.mkdir(exist_ok=True)
    for path in Path(pyspark.__file__).parent.iterdir():
        with suppress(FileExistsError):
            (folder / path.name).symlink_to(path)
    if (folder / "work").is_symlink():
        (folder / "work").unlink()
    return folder


def session(master: str, folder: Path) -> SparkSession:
    """A session whose files are below ``folder``. Executors that die are replaced, however often.

    A task that takes long gets a speculative twin if there is another host.
    """
    ensure_java()
    # Virtual machines that live for seconds: what they compile thoroughly does not pay.
    java = f"-Djava.io.tmpdir={folder / 'tmp'} {QUICK}"
    spark = (
        SparkSession.builder.master(master)
        .appName("kills")
        .config("spark.driver.memory", "512m")
        .config("spark.local.dir", str(folder / "local"))
        .config("spark.driver.extraJavaOptions", java)
        .config("spark.executor.extraJavaOptions", java)
        .config("spark.deploy.maxExecutorRetries", "-1")
        .config("spark.speculation", "true")
        .config("spark.speculation.interval", "200ms")
        .config("spark.speculation.minTaskRuntime", "1s")
        .config("spark.speculation.quantile", "0.5")
        .config("spark.speculation.multiplier", "1.1")
        .config("spark.speculation.efficiency.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config(PROVIDER, ROCKS_DB)
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    spark.dataSource.register(PystormDataSource)
    return spark


def of_job(folder: Path, failures: int = 1000, more: Mapping[str, str] = MappingProxyType({})) -> SparkSession:
    """A job's own session in one process, whose workers are killed: a task may fail so often."""
    ensure_java()
    builder = (
        SparkSession.builder.master(f"local[2,{failures}]")
        .config("spark.driver.memory", "512m")
        .config("spark.local.dir", str(folder / "local"))
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
    )
    for key, value in more.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def end(spark: SparkSession) -> None:
    """Stops the session and its JVM, so that the next one may have another master."""
    gateway = spark.sparkContext._gateway
    spark.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(60)
    SparkContext._gateway = SparkContext._jvm = None
