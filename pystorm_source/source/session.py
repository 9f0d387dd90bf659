"""A local Spark session for the command line; jobs and notebooks bring their own."""

from pyspark.sql import SparkSession


def local_session(name: str, cores: str = "*") -> SparkSession:
    """A quiet session on this machine: no UI, as many shuffle partitions as a laptop needs, errors only in the log.

    Python workers that crash print their stack (``spark.python.worker.faulthandler.enabled``).
    """
    session = (
        SparkSession.builder.appName(name)
        .master(f"local[{cores}]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.streaming.numRecentProgressUpdates", "10000")
        .config("spark.python.worker.faulthandler.enabled", "true")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    return session
