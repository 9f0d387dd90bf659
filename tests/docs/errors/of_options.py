"""Examples of errors about options, modules and what belongs to them."""

import shutil
import sys
from pathlib import Path
from unittest import mock

import pyarrow as pa

from pystorm_source import compat, read_stream, register
from pystorm_source.api import JavaBolt, Spout, Topology
from pystorm_source.errors import PystormError, UsageError, WorldError
from pystorm_source.plan import compile_plan
from pystorm_source.source.task.range_partition import PlannedBatch, RangePartition
from pystorm_source.spark import java
from pystorm_source.spark.interned import interned, pickled
from pystorm_source.spouts import FilesSpout, KafkaSpout, MemorySpout
from pystorm_source.testing import run_topology
from pystorm_source.worker.output import OutputPlan
from pystorm_source.worker.worker import Worker
from tests.docs.errors.examples import Numbers, raises, spark


@raises("PYSTORM_ERROR")
def _():
    class NotToday(PystormError):
        pass

    raise NotToday("the shop is closed: come back tomorrow. Given: 'Sunday'")


@raises("PYSTORM_ERROR")
def _():
    class NoShop(UsageError):
        pass

    raise NoShop("there is no such shop: north or south. Given: 'east'")


@raises("PYSTORM_EXTERNAL_FAILURE")
def _():
    raise WorldError("the broker does not answer: start it. Given: 'broker:9092'")


@raises("PYSTORM_INTERNAL_ERROR", "A worker was asked to read a spout that its topology does not have.")
def _():
    worker = Worker(compile_plan(Numbers), OutputPlan(pa.schema([]), ()))
    list(worker.run("others", "p", 0, 1))


@raises("PYSTORM_INVALID_ARGUMENT")
def _():
    run_topology(Numbers, errors="ignore")


@raises("PYSTORM_INVALID_ARGUMENT")
def _():
    read_stream(Numbers, spark)


@raises("PYSTORM_NOT_SUPPORTED")
def _():
    JavaBolt.spec(full_class_name="jobs.Count")


@raises("PYSTORM_NOT_SUPPORTED")
def _():
    print(Numbers.thrift_spouts)


@raises("PYSTORM_INVALID_OPTION")
def _():
    run_topology(Numbers, {"topology.max.spout.pending": 0})


@raises("PYSTORM_UNKNOWN_OPTION")
def _():
    read_stream(spark, Numbers, options={"maxOffsetPerTrigger": 5})


@raises("PYSTORM_MISSING_OPTION")
def _():
    class Followed(Topology):
        lines = FilesSpout.spec()

    read_stream(spark, Followed)


@raises("PYSTORM_OPTIONS_CONFLICT")
def _():
    read_stream(spark, Numbers, stream="numbers", streams="all")


@raises("PYSTORM_OPTIONS_CONFLICT")
def _():
    read_stream(spark, Numbers, endingOffsets={"numbers": {"0": 1}})


@raises("PYSTORM_OPTIONS_CONFLICT")
def _():
    class Orders(Topology):
        orders = KafkaSpout.spec(config={"kafka.bootstrap.servers": "broker:9092", "subscribe": "orders"})

    read_stream(spark, Orders, options={"kafka.ssl.truststore.location": "/etc/kafka/trust.jks"})


@raises("PYSTORM_INVALID_OPTION")
def _():
    read_stream(spark, Numbers, config='{"topology.debug": yes}')


@raises("PYSTORM_INVALID_OPTION")
def _():
    read_stream(spark, Numbers, startingOffsets="newest")


@raises("PYSTORM_INVALID_OPTION")
def _():
    register(spark, Numbers, name="my-numbers")


@raises("PYSTORM_NOT_WRITABLE")
def _():
    run_topology(Numbers, {"pystorm.log.path": "/dev/null/logs"})


@raises("PYSTORM_INVALID_OPTION")
def _():
    class Followed(Topology):
        lines = FilesSpout.spec(path="/no/such/folder")

    run_topology(Followed)


@raises("PYSTORM_INVALID_OPTION")
def _():
    class Sized(Topology):
        numbers = MemorySpout.spec(fields=["n long"], rows=[[1]], par={"test": 1, "prod": 8})

    run_topology(Sized)


@raises("PYSTORM_SPOUT_WITHOUT_OFFSETS")
def _():
    class Clicks(Spout):
        outputs = ["url string"]

        def next_tuple(self):
            self.emit(["/index.html"])

    class Site(Topology):
        clicks = Clicks.spec()

    read_stream(spark, Site)


@raises("PYSTORM_NAME_NOT_FOUND")
def _():
    read_stream(spark, "__main__:Words")  # or .option("topology", "__main__:Words")


@raises("PYSTORM_NAME_NOT_FOUND")
def _():
    run_topology(Numbers, {"topology.bolt.wait.strategy": "collections:Patient"})


@raises("PYSTORM_IMPORT_FAILED")
def _():
    Path("jobs.py").write_text("RATE = 1 / 0")
    read_stream(spark, "jobs:Words")


@raises("PYSTORM_NAME_NOT_FOUND")
def _():
    read_stream(spark, "no_such_module:Words")


@raises("PYSTORM_PACKAGE_MISSING")
def _():
    Path("jobs.py").write_text("import no_such_package")
    read_stream(spark, "jobs:Words")


@raises("PYSTORM_PACKAGE_MISSING", "The driver's Python has a module `jobs`, and the executor's has not.")
def _(folder):
    (folder / "jobs.py").write_text("class Words:\n    pass\n")
    import jobs

    made = pickled(jobs.Words)
    (folder / "jobs.py").unlink()
    shutil.rmtree(folder / "__pycache__", ignore_errors=True)
    del sys.modules["jobs"]
    interned(made)


@raises("PYSTORM_PACKAGE_IN_THE_WAY", "`compat.install()` is called where the real streamparse is installed.")
def _(folder):
    if "streamparse" not in sys.modules:
        (folder / "streamparse.py").write_text("")
    compat.install()


@raises("PYSTORM_CODE_DIFFERS", "An executor has another version of this package than the driver.")
def _():
    RangePartition("numbers", "0", 0, 2, PlannedBatch("0.0.1", "7d1f")).check("Numbers", "7d1f")


@raises("PYSTORM_CODE_DIFFERS", "The topology was changed, and an executor has loaded it before.")
def _():
    from pystorm_source.version import __version__

    RangePartition("numbers", "0", 0, 2, PlannedBatch(__version__, "7d1f")).check("Numbers", "90c4")


@raises("PYSTORM_COMPILED_FOR_ANOTHER_VERSION", "pystorm-source was upgraded, and a compiled bolt was not built again.")
def _():
    from cython_core.abi import require

    require("fast_words.bolts", "0.0.1", "5d9a4b6f8f6c2d1e")  # a compiled module asks so when it is imported


@raises("PYSTORM_PACKAGE_MISSING", "Neither `JAVA_HOME` nor `PATH` nor a package of Python's has a Java.")
def _():
    with mock.patch.object(java, "_homes", return_value=[]):
        java.ensure_java()
