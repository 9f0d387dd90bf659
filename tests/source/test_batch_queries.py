"""Batch queries, SQL, registration, types and refusals through Spark."""

import uuid

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Row

from pystorm_source import read, register
from pystorm_source.errors import TopologyError
from tests.source import topologies

pytestmark = [pytest.mark.spark, pytest.mark.spark40]


def load(spark, options, schema=None):
    reader = spark.read.format("pystorm").options(**options)
    return (reader.schema(schema) if schema else reader).load()


def rows(frame):
    return sorted(tuple(row) for row in frame.collect())


def numbers(part, start, end):
    return [(part, n) for n in range(start, end)]


@pytest.mark.timeout(180)  # may be the first query of the session
def test_batch_read_from_start_to_end(spark, world):
    world.put(a=50, b=(10, 30))
    options = world.options(
        startingOffsets='{"numbers": {"a": 45}}', endingOffsets='{"numbers": {"b": 12}}', minPartitions=3
    )
    frame = load(spark, options)
    assert frame.rdd.getNumPartitions() == 3
    assert rows(frame) == numbers("a", 45, 50) + numbers("b", 10, 12)


def test_empty_world(spark, world):
    assert rows(load(spark, world.options())) == []


def test_what_a_process_has_loaded_is_not_collected_after_each_task(spark, world):
    """Spark's daemon collects then: with the modules of a topology it took nine tenths of a short task."""
    world.put(a=1)
    ((frozen,),) = rows(load(spark, world.options("Collected")))
    assert frozen > 30_000


def test_limit_stops_early(spark, world):
    """More than Spark takes: the iterator is closed, and the next read is whole again."""
    world.put(a=400_000)
    frame = load(spark, world.options(output__batch__rows=1000))
    assert frame.limit(3).count() == 3
    assert frame.agg({"n": "sum"}).collect()[0][0] == sum(range(400_000))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"startingOffsets": "latest"}, "'startingOffsets' of a batch read cannot be latest"),
        ({"endingOffsets": '{"numbers": {"a": 99}}'}, "'endingOffsets' lies beyond the end of numbers/a, which is 5"),
        ({"endingOffsets": '{"numbers": {"x": 1}}'}, r"'numbers' does not have now; it has \['a'\]"),
        (
            {"startingOffsets": '{"numbers": {"a": 3}}', "endingOffsets": '{"numbers": {"a": 2}}'},
            "'endingOffsets' lies before the start of numbers/a, which is 3",
        ),
    ],
)
def test_offsets_that_do_not_fit(spark, world, options, says):
    world.put(a=5)
    with pytest.raises(PySparkException, match=says):
        load(spark, world.options(**options)).collect()


def test_rows_that_are_gone(spark, world):
    world.put(a=(3, 5))
    options = world.options(startingOffsets='{"numbers": {"a": 1}}')
    with pytest.raises(PySparkException, match=r"offsets 1 to 3 \(exclusive\) of numbers/a are gone"):
        load(spark, options).collect()
    assert rows(load(spark, {**options, "failOnDataLoss": "false"})) == numbers("a", 3, 5)


REFUSED = [
    ({"topology": ""}, "option 'topology' is needed"),
    ({"topology": "no.such:X"}, "module 'no.such' cannot be imported"),
    ({"maxOffsetPerTrigger": "5"}, "unknown option .*did you mean 'maxOffsetsPerTrigger'"),
    ({"maxOffsetsPerTrigger": "many"}, "'maxOffsetsPerTrigger'.*Given: 'many'"),
    ({"streams": "both"}, "'streams'"),
    ({"topology": "tests.source.topologies:Ticks"}, "delivery.guarantee=best-effort"),
    ({"topology": "tests.source.topologies:Untyped"}, r"say|\.schema\('part string, n string'\)"),
    ({"topology": "tests.source.topologies:Misspelled"}, "the type of field 'n' of misspelled.default"),
    ({"topology": "tests.source.topologies:Parted"}, "several streams leave topology 'Parted'"),
]


@pytest.mark.parametrize("way", ["read", "readStream"])
@pytest.mark.parametrize(("options", "says"), REFUSED, ids=[next(reversed(o.items()))[1] for o, _ in REFUSED])
def test_wrong_options_are_refused_at_load(spark, world, way, options, says):
    with pytest.raises(AnalysisException, match=f"(?s){says}"):
        getattr(spark, way).format("pystorm").options(**{**world.options(), **options}).load()


def test_every_type_through_spark(spark, world):
    world.put(k=4)
    frame = load(spark, world.options("Kinds"))
    assert frame.schema.simpleString().startswith(
        "struct<flag:boolean,tiny:tinyint,small:smallint,whole:int,big:bigint,"
    )
    assert frame.schema.simpleString().endswith("pair:struct<x:int,y:struct<z:string>>,sure:string>")
    assert not frame.schema["sure"].nullable
    full, empty = frame.orderBy(frame.flag.isNull()).collect()[1:3]
    expected = {field.split()[0]: value for field, value in topologies.KINDS.items()}
    expected["pair"] = Row(x=1, y=Row(z="deep"))
    expected["raw"] = bytearray(expected["raw"]) if isinstance(full.raw, bytearray) else expected["raw"]
    assert full.asDict() == expected
    assert {name: value for name, value in empty.asDict().items() if value is not None} == {"sure": "always"}
    # What Spark's own code makes of them, not only its way back to Python:
    assert tuple(
        frame.where("flag").selectExpr("counts['a']", "lists[0][0]", "cast(price as string)", "hex(raw)").first()
    ) == (
        1,
        "a",
        "12345678901234567.125",
        "00FF",
    )


def test_all_streams(spark, world):
    world.put(a=3)
    assert rows(load(spark, world.options("Parted", streams="all")).select("n", "text", "_stream").fillna("")) == [
        (0, "", "even"),
        (1, "1", "odd"),
        (2, "", "even"),
    ]


def test_user_schema_out_of_range(spark, world):
    world.put(a=(2**31 - 1, 2**31 + 1))
    with pytest.raises(PySparkException, match=r"field 'n' .*int32.*2147483648"):
        load(spark, world.options("Numbers"), "n int").collect()


def sql_options(options):
    return ", ".join(f"`{key}` '{value}'" for key, value in options.items())


def test_temporary_view(spark, world):
    world.put(a=4)
    name = f"v_{uuid.uuid4().hex}"
    spark.sql(f"CREATE TEMPORARY VIEW {name} USING pystorm OPTIONS ({sql_options(world.options('Doubled'))})")
    assert spark.sql(f"SELECT sum(twice) FROM {name}").first()[0] == 12
    spark.catalog.dropTempView(name)


def test_table(spark, world):
    """Spark keeps the OPTIONS of a table to itself: the error says so, and it is worked around by WITH."""
    world.put(a=4)
    name = f"t_{uuid.uuid4().hex}"
    spark.sql(f"CREATE TABLE {name} USING pystorm OPTIONS ({sql_options(world.options())})")
    try:
        with pytest.raises(AnalysisException, match="CREATE TEMPORARY VIEW"):
            spark.sql(f"SELECT * FROM {name}").collect()
        given = ", ".join(f"'{key}' = '{value}'" for key, value in world.options().items())
        assert spark.sql(f"SELECT count(*) FROM {name} WITH ({given})").first()[0] == 4
    finally:
        spark.sql(f"DROP TABLE {name}")


def test_an_options_table_of_a_notebook_is_refused_before_it_loses_its_fields(spark, notebook):
    topology = notebook(
        """
from pystorm_source.options import Options

class CellOptions(Options, frozen=True, kw_only=True):
    total: int = 4
"""
        + notebook.text.replace("(PartitionedSpout):", "(PartitionedSpout):\n    Options = CellOptions")
    )
    assert topology.specs[0].component_cls.Options.__module__ == "__main__"
    with pytest.raises(TopologyError, match=r"options table of 'numbers'.*module.*Given: CellOptions"):
        register(spark, topology)


@pytest.mark.campaign
def test_read_by_class(spark, world):
    world.put(a=3)
    frame = read(
        spark,
        topologies.Untyped,
        schema="n long",
        path=str(world.folder),
        startingOffsets={"numbers": {"a": 1}},
        minPartitions=None,
        failOnDataLoss=True,
        **{"topology.debug": False},
    )
    assert rows(frame) == [(1,), (2,)]


def test_registered_under_a_name(spark, world):
    world.put(a=2)
    assert register(spark, "tests.source.topologies:Numbers", name="my_numbers") == "my_numbers"
    assert rows(spark.read.format("my_numbers").load(str(world.folder))) == numbers("a", 0, 2)
    with pytest.raises(AnalysisException, match="'my_numbers' was registered with its topology"):
        spark.read.format("my_numbers").options(**world.options()).load()
