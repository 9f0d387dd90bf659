"""The Spark session that measures: two cores, one JVM, no UI, everything in a temporary folder."""

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from benchmarks.harness.record import ROOT


@contextlib.contextmanager
def spark_session(
    master: str = "local[2]", jars: Path | None = None, more: Mapping[str, str] = MappingProxyType({})
) -> Iterator[tuple[Any, Path]]:
    """Yields the session and its folder, and removes both afterwards. ``jars``: a folder of jars that Spark needs
    besides its own; ``more``: settings. Raises WorldError without Java."""
    from pyspark.sql import SparkSession

    from pystorm_source.spark.java import ensure_java
    from pystorm_source.spark.worker_python import ensure_worker_python

    ensure_java()
    ensure_worker_python()
    # Spark's Python processes import the benchmark's classes by name; they are children of the JVM and inherit this.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    with tempfile.TemporaryDirectory(prefix="pystorm-benchmark-", ignore_cleanup_errors=True) as folder:
        settings = {
            "spark.driver.memory": "2g",
            "spark.local.dir": f"{folder}/local",
            "spark.sql.warehouse.dir": f"{folder}/warehouse",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.streaming.stopTimeout": "20s",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            **more,
        }
        if jars is not None:
            settings["spark.jars"] = ",".join(map(str, jars.glob("*.jar")))
        builder = SparkSession.builder.master(master).appName("pystorm-source benchmarks")
        for key, value in settings.items():
            builder = builder.config(key, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        try:
            yield session, Path(folder)
        finally:
            session.stop()
