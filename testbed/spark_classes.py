"""An archive of the classes that Spark's JVM loads: it halves the start of each of the tests' many JVMs.

    python -m testbed.spark_classes        # makes build/spark-classes.jsa if it is missing, as make test does

A JVM maps the archive instead of reading, checking and linking 15,000 classes of 300 jars. It checks by itself whether
the archive fits its Java and its jars, and ignores it if not.

Source: JEP 350 (dynamic class data sharing).
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ARCHIVE = Path(__file__).resolve().parents[1] / "build" / "spark-classes.jsa"
QUICK = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
"""For minutes of small queries: the thorough compiler and parallel collectors take a core from the tests."""
QUIET = "-Xlog:disable -Xlog:all=error:stderr"
"""The JVM's messages about classes that it does not archive, or an archive that does not fit."""


def submit_options() -> str:
    """Returns SPARK_SUBMIT_OPTS: options for the JVM of each driver that Spark's scripts start and of its executors."""
    archive = f" -XX:SharedArchiveFile={ARCHIVE} {QUIET}" if ARCHIVE.exists() else ""
    return f'{QUICK}{archive} -Dspark.executor.extraJavaOptions="{QUICK}{archive}"'


def checkpoint_files() -> str:
    """Names a Spark class for checkpoint files that starts no processes. The default class runs ``readlink`` thirty
    times in a micro-batch, each for 8 ms and 5 ms of a core."""
    import pyspark

    folder = "" if pyspark.__version__.startswith("4.0.") else "checkpointing."
    return f"org.apache.spark.sql.execution.streaming.{folder}FileSystemBasedCheckpointFileManager"


def made_for() -> str:
    """Names the Java and the Spark that make the archive."""
    import pyspark

    from pystorm_source.spark.java import ensure_java

    java = ensure_java()
    return f"{java} {pyspark.__version__} {pyspark.__file__}"


def make() -> None:
    """Makes the archive unless this Java and this Spark already have one. Takes about 40 seconds of a core."""
    note = ARCHIVE.with_suffix(".txt")
    if ARCHIVE.exists() and note.exists() and note.read_text() == made_for():
        return
    print("archiving the classes of Spark's JVM (40 seconds, once)", flush=True)
    ARCHIVE.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        # Order: first under another name, because tests of a second make may use the old archive.
        made = Path(folder) / ARCHIVE.name
        options = f"{QUICK} -XX:ArchiveClassesAtExit={made} {QUIET}"
        done = subprocess.run(
            [sys.executable, "-m", "testbed.spark_classes", "load", folder],
            env={**os.environ, "SPARK_SUBMIT_OPTS": options, "SPARK_LOCAL_IP": "127.0.0.1"},
            cwd=Path(__file__).resolve().parents[1],
            capture_output=True,
            text=True,
        )
        if done.returncode != 0 or not made.exists():
            print(f"no archive was made, tests start slower: {done.stderr[-2000:]}", file=sys.stderr)
            return
        replaced = ARCHIVE.with_suffix(".new")
        replaced.write_bytes(made.read_bytes())
        replaced.replace(ARCHIVE)
        note.write_text(made_for())


def load(folder: Path) -> None:
    """Has a JVM load what tests load: a streaming query of this source with a checkpoint, files, SQL, a batch read."""
    from pyspark.sql import SparkSession

    import pystorm_source
    from pystorm_source.spark.java import ensure_java
    from pystorm_source.spouts import MemorySpout

    class Numbers(pystorm_source.Topology):
        numbers = MemorySpout.spec(fields=["n long", "word string"], rows=[[n, "word"] for n in range(100)])

    ensure_java()
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.warehouse.dir", f"{folder}/warehouse")
        .getOrCreate()
    )
    frame = pystorm_source.read_stream(spark, Numbers)
    writer = frame.writeStream.format("parquet").option("checkpointLocation", f"{folder}/checkpoint")
    query = writer.trigger(availableNow=True).start(f"{folder}/out")
    query.awaitTermination()
    rows = spark.read.parquet(f"{folder}/out")
    rows.groupBy(rows.columns[0]).count().orderBy("count").limit(3).collect()
    rows.write.json(f"{folder}/json")
    pystorm_source.read(spark, Numbers).limit(3).collect()
    spark.sql("SELECT 1 AS one").createOrReplaceTempView("ones")
    spark.table("ones").collect()
    gateway = spark.sparkContext._gateway
    spark.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(120)  # it writes the archive when it ends
    os._exit(0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["load"]:
        load(Path(sys.argv[2]))
    else:
        make()
