"""What apply() refuses, before Spark is asked for anything but the schema."""

import socket

import pytest
from pyspark.sql.types import IntegerType, LongType, StructField, StructType

from pystorm_source import Input, Topology, apply, read_stream
from pystorm_source.errors import ArgumentTypeError, OptionError, SchemaError, TopologyError, WorldError
from pystorm_source.source.request import ReadRequest
from pystorm_source.spouts import MemorySpout
from tests.operator.topologies import Double, Doubles, Evens


class Frame:
    """A DataFrame as far as apply() looks at it before it refuses."""

    _jdf = None

    def __init__(self, **columns):
        self.schema = StructType([StructField(name, kind) for name, kind in columns.items()])

    def mapInArrow(self):
        raise AssertionError("it was to be refused")


IDS = Frame(id=LongType())


class Source(Topology):
    numbers = MemorySpout.spec(fields=["id long"], rows=[[1]])
    double = Double.spec(inputs=[numbers])


class TwoInputs(Topology):
    rows = Input.spec(["id long"])
    more = Input.spec(["id long"])
    double = Double.spec(inputs=[rows])
    again = Double.spec(inputs=[more])


def test_what_is_no_data_frame():
    with pytest.raises(ArgumentTypeError, match=r"apply\(df, Words\)"):
        apply(Doubles, IDS)


def test_a_topology_of_a_source():
    with pytest.raises(TopologyError, match=r"Input\.spec"):
        apply(IDS, Source)


def test_two_inputs():
    with pytest.raises(TopologyError, match="no other spout"):
        apply(IDS, TwoInputs)


def test_a_column_that_is_missing():
    with pytest.raises(SchemaError, match=r"'text', and the DataFrame has no such column.*Given: \['id'\]"):
        apply(IDS, Evens)


def test_a_column_of_another_type():
    with pytest.raises(SchemaError, match=r"cast\('bigint'\).*Given: 'int'"):
        apply(Frame(id=IntegerType()), Doubles)
    with pytest.raises(SchemaError, match="declares column 'text' as string"):
        apply(Frame(text=LongType(), id=LongType()), Evens)


def test_a_column_that_is_there_twice_but_for_case():
    with pytest.raises(SchemaError, match="more than once"):
        apply(Frame(ID=LongType(), Id=LongType()), Doubles)


@pytest.mark.parametrize("key", ["startingOffsets", "maxOffsetsPerTrigger", "includeMetadata", "journal.path", "path"])
def test_an_option_of_sources(key):
    with pytest.raises(OptionError, match="is for sources"):
        apply(IDS, Doubles, options={key: "1"})


def test_an_unknown_option():
    with pytest.raises(OptionError, match="unknown option"):
        apply(IDS, Doubles, options={"topology.schedular": "inline"})


@pytest.mark.parametrize("columns", [[], ["id long", "id string"]])
def test_an_input_without_its_columns(columns):
    with pytest.raises(TopologyError):
        Input.spec(columns)


def test_an_input_in_a_source():
    with pytest.raises(TopologyError, match=r"pystorm_source\.apply"):
        ReadRequest.of({"topology": "tests.operator.topologies:Doubles"})
    with pytest.raises(TopologyError, match=r"pystorm_source\.apply"):
        read_stream(object(), Doubles)


class Unknown(Frame):
    """In a query function of a declarative pipeline."""

    @property
    def schema(self):
        raise RuntimeError("[ATTEMPT_ANALYSIS_IN_PIPELINE_QUERY_FUNCTION] Operations that ...")

    @schema.setter
    def schema(self, schema):
        pass


class Untyped(Topology):
    rows = Input.spec(["id"])
    double = Double.spec(inputs=[rows])


def test_in_a_pipeline_an_input_declares_its_types():
    with pytest.raises(SchemaError, match="declare the type of field 'id' of input 'rows', such as 'id string'"):
        apply(Unknown(), Untyped)


@pytest.mark.parametrize("arguments", [{"keep": "*"}, {"keep": ["other"]}, {"key": ["other"]}])
def test_in_a_pipeline_other_columns_are_not_known(arguments):
    with pytest.raises(SchemaError, match=r"takes those of input 'rows' alone, id\. Given"):
        apply(Unknown(), Doubles, **arguments)


class Limited(Doubles):
    config = {"topology.rate.limit": {"api": "10/s"}}


def test_a_process_that_cannot_listen_gives_no_permits(spark):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        options = {"feedback.host": "127.0.0.1", "feedback.port": port}
        with pytest.raises(WorldError, match=rf"topology\.rate\.limit\.tasks.*feedback\.port={port}"):
            apply(spark.range(1), Limited, options=options)
