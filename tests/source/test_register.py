"""What `read_stream` and `read` refuse by themselves, before Spark is asked anything."""

import importlib
import textwrap
import threading

import pytest
from pyspark.sql.types import StringType, StructField, StructType

from pystorm_source import Bolt, Topology, read, read_stream, register
from pystorm_source.errors import OptionError, SchemaError, TopologyError, UsageError
from pystorm_source.spark.versions import named_reader
from pystorm_source.spouts import MemorySpout
from tests.source import topologies

TEXTS = StructType([StructField("x", StringType())])


class NoSpark:
    """A session that answers nothing."""


class Unmade(topologies.TickSpout):
    def __init__(self, *arguments):
        raise AssertionError("a check makes no component")


class Passing(Bolt):
    outputs = ["n"]

    def process(self, tup):
        self.emit(tup.values)


class Untyped(Topology):
    ticks = Unmade.spec()
    passed = Passing.spec(inputs=[ticks])


BEST = {"delivery.guarantee": "best-effort"}
REFUSED = [
    (topologies.Numbers, "n long", {"maxOffsetPerTrigger": 5}, OptionError, "unknown option 'maxOffsetPerTrigger'"),
    (topologies.Numbers, "n long", {"maxOffsetsPerTrigger": 0}, OptionError, "'maxOffsetsPerTrigger'.*Given: '0'"),
    (Untyped, "n long", {}, OptionError, "spout 'ticks'.*delivery.guarantee=best-effort"),
    (topologies.Closed, "n long", {}, OptionError, "no stream leaves this topology"),
    (topologies.Parted, "n long", {}, OptionError, "several streams leave topology 'Parted'"),
    (Untyped, TEXTS, BEST, SchemaError, "names each column once, out of .'n'.*Given: .'x'"),
    (Untyped, "x string", BEST, SchemaError, "names each column once, out of .'n'.*Given: .'x'"),
    (topologies.Numbers, "n array<long>", {}, SchemaError, "column 'n' is declared bigint"),
    (Untyped, None, BEST, SchemaError, "declares fields without a type"),
    (topologies.Joined, None, {}, TopologyError, "bolt 'joined' .* spouts 'numbers' and 'others' together"),
    (topologies.Misspelled, "n long", {}, SchemaError, "Given: "),
]


@pytest.mark.parametrize("reading", [read, read_stream])
@pytest.mark.parametrize("by", ["keyword", "options"])
@pytest.mark.parametrize(("topology", "schema", "options", "error", "says"), REFUSED)
def test_is_refused_before_spark_is_asked(reading, by, topology, schema, options, error, says):
    given = options if by == "keyword" else {"options": options}
    with pytest.raises(error, match=f"(?s){says}"):
        reading(NoSpark(), topology, schema=schema, **given)


@pytest.mark.parametrize("reading", [read, read_stream, register])
def test_what_cannot_be_pickled_is_named(reading):
    """Spark would say: cannot pickle '_thread.lock' object."""
    lock = threading.Lock()

    class Counted(Bolt):
        outputs = ["n long"]

        def process(self, tup):
            with lock:
                self.emit(tup.values)

    class Line(Topology):
        numbers = MemorySpout.spec(fields=["n long"], rows=[[1]])
        counted = Counted.spec(inputs=[numbers])

    with pytest.raises(TopologyError) as caught:
        reading(NoSpark(), Line)
    assert caught.value.code == "PYSTORM_CANNOT_PICKLE"
    assert caught.value.message.startswith(
        "component 'counted' (Counted) cannot travel to Spark's tasks: process() → variable 'lock' is a _thread.lock, "
    )
    assert "open it in initialize()" in caught.value.message and ". Given: <unlocked" in caught.value.message


@pytest.mark.spark
def test_a_module_that_the_driver_alone_has(spark, tmp_path, monkeypatch):
    """Its folder was put on sys.path by the program, which Spark's processes do not see."""
    source = """
        from pystorm_source import Topology
        from pystorm_source.spouts import MemorySpout

        class Rows(MemorySpout):
            pass

        class Numbers(Topology):
            numbers = Rows.spec(fields=["n long"], rows=[[1]])
    """
    (tmp_path / "jobs_of_the_driver.py").write_text(textwrap.dedent(source))
    monkeypatch.syspath_prepend(tmp_path)
    topology = importlib.import_module("jobs_of_the_driver").Numbers
    with pytest.raises(Exception, match="PYSTORM_PACKAGE_MISSING") as caught:
        read(spark, topology).collect()
    said = next(line for line in str(caught.value).splitlines() if "PYSTORM_PACKAGE_MISSING" in line)
    assert "'jobs_of_the_driver' can be imported where the query was started" in said
    assert "--py-files" in said and "Given: 'jobs_of_the_driver'" in said


@pytest.mark.spark
def test_a_session_that_a_component_uses(spark):
    class Asks(Bolt):
        outputs = ["n long"]

        def process(self, tup):
            spark.range(tup.values.n)

    class Line(Topology):
        numbers = MemorySpout.spec(fields=["n long"], rows=[[1]])
        asks = Asks.spec(inputs=[numbers])

    with pytest.raises(TopologyError) as caught:
        read_stream(spark, Line)
    said = caught.value.message
    assert said.startswith("component 'asks' (Asks) cannot travel to Spark's tasks: process() → variable 'spark' is a ")
    assert "SparkSession, which cannot be pickled" in said and "hand plain values over by spec(config={...})" in said


@pytest.mark.parametrize("reading", [read, read_stream])
def test_a_key_is_given_once(reading):
    with pytest.raises(OptionError, match=r"'MINpartitions' is given as a keyword and in `options`.*Given: 3"):
        reading(NoSpark(), topologies.Numbers, minPartitions=2, options={"MINpartitions": 3})


def test_each_refuses_what_is_the_others():
    with pytest.raises(OptionError, match="'endingOffsets' is for spark.read"):
        read_stream(NoSpark(), topologies.Numbers, schema="n long", endingOffsets={"numbers": {"a": 3}})
    with pytest.raises(OptionError, match="'startingOffsets' of a batch read cannot be latest"):
        read(NoSpark(), topologies.Numbers, schema="n long", startingOffsets="latest")


@pytest.mark.parametrize("schema", ["n long", "N: decimal(10, 2) not null", "n long comment 'what Spark alone reads'"])
def test_what_is_right_goes_on_to_spark(schema):
    with pytest.raises(AttributeError, match="NoSpark"):
        read_stream(NoSpark(), Untyped, schema=schema, **BEST)


def test_a_file_that_the_driver_elsewhere_has_is_not_looked_for():
    """Under Spark Connect; so is all that depends on it."""
    with pytest.raises(AttributeError, match="NoSpark"):
        read_stream(NoSpark(), Untyped, schema="n long", config="/only/there.yaml", **BEST)
    with pytest.raises(UsageError):
        read_stream(NoSpark(), Untyped, schema="n long", config="{")


@pytest.mark.parametrize("function", [read, read_stream, register])
@pytest.mark.parametrize("session", [topologies.Numbers, "tests.source.topologies:Numbers", None])
def test_a_topology_in_the_place_of_the_session_is_refused(function, session):
    with pytest.raises(TypeError, match=rf"the session comes first: {function.__name__}\(spark, ") as refused:
        function(session, NoSpark())
    assert refused.value.code == "PYSTORM_INVALID_ARGUMENT"


@pytest.mark.parametrize("name", ["", "a-b", "a b", 5, "é"])
def test_a_source_has_a_name_that_spark_takes(name):
    with pytest.raises(ValueError, match=r"the name of a source is letters, digits and underscores. Given: name="):
        read_stream(NoSpark(), Untyped, name=name)


def test_a_spark_without_names_of_sources_says_so():
    with pytest.raises(ValueError, match=r"this Spark has no names of sources.*Given: name='prices'"):
        named_reader(NoSpark(), "prices")
    assert isinstance(named_reader(NoSpark(), None), NoSpark)
