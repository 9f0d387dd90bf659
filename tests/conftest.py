"""What all tests share: one Spark session, in a temporary folder, and the places that its Python workers import from.

Deadlines are pytest-timeout's (``timeout`` in ``pyproject.toml``); a test that may take longer says so with
``@pytest.mark.timeout(...)``.
"""

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from pystorm_source.spark.worker_python import quick_python
from testbed.spark_classes import checkpoint_files, submit_options
from testbed.warm_runners import warm_runners
from tests.side_by_side import (  # noqa: F401
    pytest_collection_finish,
    pytest_collection_modifyitems,
    pytest_configure_node,
    pytest_deselected,
    pytest_runtest_protocol,
    pytest_sessionfinish,
    pytest_terminal_summary,
    pytest_testnodedown,
    pytest_xdist_make_scheduler,
)
from tests.sizes import sized
from tests.world import notebook, world  # noqa: F401

# The same examples in every run, so that only a change turns a test red; HYPOTHESIS_PROFILE=search looks for others.
settings.register_profile("fixed", derandomize=True, database=None, deadline=None, max_examples=sized(100))
settings.register_profile("search", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))

# A shell that starts a command in the background may have it ignore Ctrl-C, and so would all processes of the tests.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parent.parent
WARM_DAEMONS = ROOT / "testbed/warm_daemons"

# Before any JVM is started: its planners, runners and workers are children of the JVM and inherit this.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = quick_python()
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
os.environ.pop("SPARK_HOME", None)
# Else each of their hundreds of Python processes compiles the sources anew: 0.3 s of a core.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# numpy's OpenBLAS starts a thread for each core, which turns in place: 0.07 s of a core for each of them.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Inherited by every script of Spark's that a test starts.
os.environ.setdefault("SPARK_SUBMIT_OPTS", submit_options())


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """The Spark session of this process: two cores, three attempts per task, no UI, all files in a temporary folder.

    With PYSTORM_SPARK_CONNECT=1 it is a client of Spark Connect, whose server runs on this machine.
    """
    from pyspark.sql import SparkSession

    from pystorm_source.spark.java import ensure_java

    ensure_java()
    folder = tmp_path_factory.mktemp("spark")
    connect = os.environ.get("PYSTORM_SPARK_CONNECT") == "1"
    builder = (
        (SparkSession.builder.remote if connect else SparkSession.builder.master)("local[2,3]")
        .appName("pystorm-source tests")
        .config("spark.driver.memory", "1g")
        .config("spark.local.dir", str(folder / "local"))
        .config("spark.python.worker.faulthandler.enabled", "true")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.streaming.checkpointFileManagerClass", checkpoint_files())
        .config("spark.sql.streaming.pollingDelay", "50ms")  # 10 ms: queries that wait take a share of a core
        .config("spark.sql.streaming.stopTimeout", "20s")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
    )
    # That of the JVM, and of the processes that it starts.
    environment = {"PYTHONPATH": f"{WARM_DAEMONS}{os.pathsep}{os.environ['PYTHONPATH']}"}
    with tempfile.TemporaryDirectory() as short, warm_runners(Path(short), os.environ | environment) as more:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in (environment | more).items():
                patch.setenv(name, value)
            session = builder.getOrCreate()
        if not connect:
            session.sparkContext.setLogLevel("ERROR")
        yield session
        session.stop()


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """A broker. Where it cannot be had the test fails with CI=true, else it is skipped."""
    if os.environ.get("CI") != "true":
        pytest.importorskip("confluent_kafka")
    from testbed.kafka_broker import kafka_cluster
    from testbed.maven import PeerMissing
    from tests.missing import missing

    try:
        with kafka_cluster(tmp_path_factory.mktemp("kafka"), secured=True) as cluster:
            yield cluster
    except PeerMissing as why:
        if shutil.which("mvn") is None:
            missing("Maven", "maven")
        if os.environ.get("CI") == "true":
            pytest.fail(str(why))
        pytest.skip(str(why))
